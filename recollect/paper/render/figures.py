"""From records to files: the figures and tables of experiments, drawn anywhere, computing nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from recollect.errors import InputError
from recollect.paper.experiment import Experiment
from recollect.paper.scales import Scale
from recollect.paper.workspace import Workspace
from recollect.records import atomically, load_arrays


def draw(
    experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, log: Callable[[str], None]
) -> list[Path]:
    """Draw every figure and table of the experiments that have records."""
    if find_spec("matplotlib") is None:
        raise InputError("Figures are drawn with matplotlib, which is not installed here: pip install matplotlib.")
    paths: list[Path] = []
    for experiment in experiments:
        files = _figures(experiment, scale, workspace)
        files += _pictures(experiment, scale, workspace)
        files += _table(experiment, scale, workspace)
        names = ", ".join(map(str, files))
        log(f"{experiment.name}: {names or 'nothing is recorded yet'}")
        paths += files
    return paths


def table_of(experiment: Experiment, scale: Scale, workspace: Workspace) -> str:
    """Make the experiment's table in Markdown; it is empty if nothing of it is recorded."""
    if not experiment.table or not _has_records(experiment, scale, workspace):
        return ""
    text = experiment.table(scale, workspace.store)
    return f"{text}{_earlier_note(experiment, scale, workspace)}" if text else ""


def _earlier_note(experiment: Experiment, scale: Scale, workspace: Workspace) -> str:
    """Say how many of the records that a table shows were measured with an earlier version of the package."""
    if workspace.store.facts(experiment.name) is not None and not workspace.store.has_facts(experiment.name):
        return "\nMeasured with an earlier version of recollect.\n"
    cells = experiment.cells(scale)
    count, earlier = workspace.store.versions_shown(cells)
    others = workspace.store.other_settings_shown(cells)
    text = ""
    if earlier:
        named = ", ".join(f"{number} with {version}" for version, number in sorted(earlier.items()))
        text += f"\nOf {count} cells shown, measured with an earlier version of recollect: {named}.\n"
    if others:
        named = ", ".join(f"{number} of {method}" for method, number in sorted(others.items()))
        text += f"\nOf {count} cells shown, measured with other settings than this version has: {named}.\n"
    return text


def _figures(experiment: Experiment, scale: Scale, workspace: Workspace) -> list[Path]:
    from recollect.paper.render.draw import save_chart

    if not _has_cells(experiment, scale, workspace):
        return []
    figures = experiment.figures(scale, workspace.store)
    return [save_chart(figure, workspace.store.folder / "figures", name) for name, figure in figures.items()]


def _pictures(experiment: Experiment, scale: Scale, workspace: Workspace) -> list[Path]:
    """Draw pictures; those of real data sets stay in the work folder, because they may not be published."""
    from recollect.paper.render.draw import save_pictures

    pictures, arrays = experiment.pictures, workspace.pictures(experiment.name)
    if pictures is None or not arrays.exists():
        return []
    try:
        loaded = load_arrays(arrays)
        figure = pictures.draw(loaded) if loaded else None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"{arrays} is damaged ({error}); remove it and run {experiment.name} again.") from None
    if figure is None:  # nothing was recovered that it could show
        return []
    may_publish = pictures.fit(scale).images.spelling.startswith("photos")
    folder = workspace.store.folder if may_publish else workspace.work
    return [save_pictures(figure, folder / "figures", experiment.name)]


def _table(experiment: Experiment, scale: Scale, workspace: Workspace) -> list[Path]:
    text = table_of(experiment, scale, workspace)
    if not text:
        return []
    path = workspace.store.folder / "tables" / f"{experiment.name}.md"
    with atomically(path) as file:
        file.write_text(text)
    return [path]


def _has_records(experiment: Experiment, scale: Scale, workspace: Workspace) -> bool:
    if workspace.store.facts(experiment.name) is not None:
        return True
    trained = {facts["training"] for facts in workspace.store.trainings()}  # also with an earlier version
    if any(fit.name in trained for fit in experiment.trainings(scale)):
        return True
    return _has_cells(experiment, scale, workspace)


def _has_cells(experiment: Experiment, scale: Scale, workspace: Workspace) -> bool:
    """Return whether a network was attacked: generic restoration alone, whose records many share, shows nothing."""
    return any(workspace.store.shown(cell) for cell in experiment.cells(scale) if cell.sees_network)
