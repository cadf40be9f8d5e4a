"""From records to files: the figures and tables of experiments, made anywhere, computing nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from recollect.auditing.pictures import load_arrays
from recollect.distributed.jobs import Tell
from recollect.errors import InputError
from recollect.paper.experiment import Experiment
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale
from recollect.records import atomically


def draw(experiments: Sequence[Experiment], scale: Scale, bench: Bench, tell: Tell) -> list[Path]:
    """Every figure and table of the experiments that something is recorded of."""
    if find_spec("matplotlib") is None:
        raise InputError("Figures are drawn with matplotlib, which is not installed here: pip install matplotlib.")
    made: list[Path] = []
    for experiment in experiments:
        files = _figures(experiment, scale, bench) + _pictures(experiment, scale, bench)
        files += _table(experiment, scale, bench)
        tell(f"{experiment.id}: " + (", ".join(map(str, files)) or "nothing is recorded yet"))
        made += files
    return made


def table_of(experiment: Experiment, scale: Scale, bench: Bench) -> str:
    """The experiment's table in markdown; empty where nothing of it is recorded."""
    results = bench.results
    recorded = (
        results.facts(experiment.id) is not None
        or any(results.training(fit) for fit in experiment.trainings(scale))
        or _has_cells(experiment, scale, bench)
    )
    return experiment.table(scale, results) if experiment.table and recorded else ""


def _figures(experiment: Experiment, scale: Scale, bench: Bench) -> list[Path]:
    from recollect.paper.render.draw import save_figure

    if not _has_cells(experiment, scale, bench):
        return []
    drawn, folder = experiment.figures(scale, bench.results), bench.results.folder / "figures"
    return [path for name, figure in drawn.items() for path in save_figure(figure, folder, name)]


def _pictures(experiment: Experiment, scale: Scale, bench: Bench) -> list[Path]:
    """Pictures of real data sets stay in the work folder: they are not ours to hand on."""
    from recollect.paper.render.draw import save_figure

    pictures, arrays = experiment.pictures, bench.pictures(experiment.id)
    if pictures is None or not arrays.exists():
        return []
    try:
        figure = pictures.draw(load_arrays(arrays))
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"{arrays} is damaged ({error}); remove it and run {experiment.id} again.") from None
    free = pictures.fit(scale).images.spelled.startswith("photos")
    return save_figure(figure, (bench.results.folder if free else bench.work) / "figures", experiment.id)


def _table(experiment: Experiment, scale: Scale, bench: Bench) -> list[Path]:
    text = table_of(experiment, scale, bench)
    path = bench.results.folder / "tables" / f"{experiment.id}.md"
    if not text:
        return []
    with atomically(path) as file:
        file.write_text(text)
    return [path]


def _has_cells(experiment: Experiment, scale: Scale, bench: Bench) -> bool:
    return any(bench.results.best_of(cell) for cell in experiment.cells(scale))
