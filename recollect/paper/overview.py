"""What there is of each experiment: cells, trainings, pictures, and the seconds they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.run import describe_not_reached
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace


def overview(scale: Scale, workspace: Workspace) -> Iterator[str]:
    """Yield two lines for each experiment: what it shows, and what of it is recorded; then the time of all."""
    yield f"scale {scale.name}, records in {workspace.store.folder}"
    for experiment in EXPERIMENTS.values():
        yield f"{experiment.name}: {experiment.summary} ({experiment.location})"
        yield "  " + ", ".join(_recorded(experiment, scale, workspace))
    of_paper = [experiment for experiment in EXPERIMENTS.values() if experiment.is_of_paper]
    own = _minutes(of_paper, scale, workspace.store, first_seed_alone=True)
    every = _minutes(EXPERIMENTS.values(), scale, workspace.store)
    yield f"the paper's own cells at one seed: {own:.1f} min; all: {every:.1f} min"


def _minutes(experiments: Iterable[Experiment], scale: Scale, store: Store, *, first_seed_alone: bool = False) -> float:
    """Add up the minutes of training and measuring that are recorded, each once."""
    fits: dict[Fit, None] = {}
    cells: dict[str, Cell] = {}
    for experiment in experiments:
        fits |= dict.fromkeys(experiment.fits(scale))
        cells |= {cell.key: cell for cell in experiment.cells(scale)}
    trainings, measured = list(fits), list(cells.values())
    if first_seed_alone:
        trainings = [fit for fit in trainings if fit == fit.first]
        measured = [cell for cell in measured if cell.fit == cell.fit.first]
    return _seconds(trainings, measured, store) / 60


def _seconds(trainings: Iterable[Fit], measured: Iterable[Cell], store: Store) -> float:
    trained = sum(facts["seconds"] for fit in trainings if (facts := store.training(fit)))
    return float(trained + sum(record.seconds for cell in measured if (record := store.find_or_best(cell))))


def _recorded(experiment: Experiment, scale: Scale, workspace: Workspace) -> Iterator[str]:
    yield from _recorded_cells(experiment.cells(scale), workspace.store)
    fits = experiment.fits(scale)
    trainings = [facts for fit in fits if (facts := workspace.store.training(fit))]
    yield f"{len(trainings)} of {len(fits)} trainings ({sum(facts['seconds'] for facts in trainings):.0f} s)"
    if experiment.pictures:  # they are no records: they lie in the work folder
        computed = workspace.pictures(experiment.name).exists()
        yield "pictures computed" if computed else "pictures not computed here"


def _recorded_cells(cells: Sequence[Cell], store: Store) -> Iterator[str]:
    unique = {cell.key: cell for cell in cells}.values()  # networks share the cells of the generic method
    records = [record for cell in unique if (record := store.find_or_best(cell))]
    yield f"{len(records)} of {len(unique)} cells ({sum(record.seconds for record in records):.0f} s)"
    missing = sum(store.is_missing(cell) for cell in unique)
    if not_reached := len(unique) - len(records) - missing:
        yield describe_not_reached(not_reached)
