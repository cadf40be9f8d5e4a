"""What there is of each experiment, and of each part of a run: recorded, missing, and the seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.order import MORE, Work, in_parts
from recollect.paper.run import describe_not_reached, gather, needing_a_network
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.paper.time_left import SecondsOfCells, time_left
from recollect.paper.workspace import Workspace


def overview(scale: Scale, workspace: Workspace) -> Iterator[str]:
    """Yield two lines for each experiment: what it shows, and what of it is recorded; then a line for each part."""
    yield f"scale {scale.name}, records in {workspace.store.folder}"
    for experiment in EXPERIMENTS.values():
        yield f"{experiment.name}: {experiment.summary} ({experiment.location})"
        yield "  " + ", ".join(_recorded(experiment, scale, workspace))
    yield "parts, in the order of a run:"
    yield from _parts(scale, workspace.store)


def _parts(scale: Scale, store: Store) -> Iterator[str]:
    """Yield for each part of a run what it took so far, and what is missing."""
    experiments = list(EXPERIMENTS.values())
    work = gather(experiments, scale)
    unique = _unique_cells(work)
    estimates = SecondsOfCells.of(unique, store)
    for part, trainings in in_parts(work, experiments, scale).items():
        cells = [cell for of_fit in trainings.values() for cell in of_fit if cell in unique]
        fits = [] if part == MORE else list(needing_a_network(trainings))
        yield f"  {part}: {_minutes(fits, cells, store)}; {time_left(fits, cells, store, estimates)}"


def _unique_cells(work: Work) -> set[Cell]:
    """List each record's cell once: the first network stands for all that share a generic method's record."""
    unique: dict[str, Cell] = {}
    for cells in work.values():
        for cell in cells:
            unique.setdefault(cell.key, cell)
    return set(unique.values())


def _minutes(trainings: Iterable[Fit], measured: Iterable[Cell], store: Store) -> str:
    """Add up the minutes of training and measuring that this version has recorded, on each device."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for fit in trainings:
        if facts := store.training(fit):
            seconds[facts["provenance"]["device"]] += facts["seconds"]
    for cell in measured:
        if record := store.find_or_best(cell):
            seconds[record.provenance["device"]] += record.seconds
    if not seconds:
        return "nothing recorded"
    return ", ".join(f"{own / 60:.1f} min on {device}" for device, own in sorted(seconds.items()))


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
