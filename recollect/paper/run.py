"""Compute experiments: gather their cells by training, and hand them to a runner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch

import torch

from recollect.distributed.jobs import Budget, Runner, in_this_process
from recollect.errors import InputError
from recollect.files.locks import lock_folder
from recollect.paper.cells import SEED, Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.measure import MASKS_TOGETHER, ComputeFacts, ComputePictures, MeasureCells
from recollect.paper.order import Work, in_parts, one_by_one
from recollect.paper.origin import note_commit
from recollect.paper.scales import Scale
from recollect.paper.stale import AtHand, set_aside_stale
from recollect.paper.workspace import Workspace

NOTHING_REMOVED: Mapping[Fit, Collection[float]] = {}


def run(
    experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, *, only: Sequence[str] = (),
    budget: Budget | None = None, log: Callable[[str], None] = lambda _: None, runner: Runner = in_this_process,
    worker_device: torch.device | None = None, masks_together: int = MASKS_TOGETHER, seeds: int | None = None,
    by_training: bool = False, kept: Mapping[Fit, Collection[float]] = NOTHING_REMOVED,
    small_runner: Runner = in_this_process,
) -> bool:  # fmt: skip
    """Compute what is missing; return whether nothing is missing afterwards.

    `only` holds patterns on trainings or cells. `worker_device` is where the runner's machines compute, if not where
    this one does. `seeds` limits how many trainings of each network there are. With `by_training`, all cells of a
    training are measured before the next training begins. `kept` names the losses whose weights stay after a training;
    of other trainings all milestones stay. `small_runner` runs in this process what takes a few images each.
    """
    note_commit()
    budget = budget or Budget()
    work = gather(experiments, scale, only, seeds)
    with lock_folder(workspace.store.folder), lock_folder(workspace.work):
        computable = _leave_out_what_lacks(work, workspace, log)
        _set_aside(experiments, scale, workspace, computable, log)
        pictures, facts = _small_jobs(experiments, scale, workspace, only)
        shown = [job.fit for job in pictures if job.fit]
        asked_for = _asked_for(work, computable, shown)
        on_workers = replace(workspace, device=worker_device or workspace.device)
        done = True
        for part in _ordered(asked_for, experiments, scale, by_training):
            jobs = [
                MeasureCells(on_workers, fit, cells, fit in shown, masks_together, asked_for[fit], kept.get(fit))
                for fit, cells in part.items()
            ]  # each knows all cells of its training, whose weights it may replace
            done = runner(jobs, budget, log) and done
            done = small_runner([*pictures, *facts], budget, log) and done  # also if a cell failed
        workspace.store.pack()
        log(f"{budget.spent:.0f} s; {progress(workspace, work)}{seconds_recorded(workspace, work)}")
        return done and not _count_missing(workspace, computable)


def _ordered(work: Work, experiments: Sequence[Experiment], scale: Scale, by_training: bool) -> list[Work]:
    """List what is computed together, in order; one part without trainings if there is none, for facts need none."""
    parts = in_parts(work, experiments, scale)
    ordered = one_by_one(parts) if by_training else list(parts.values())
    return ordered or [{}]


def _set_aside(
    experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, work: Work, log: Callable[[str], None]
) -> None:
    """Move what does not belong to the images, weights and priors at hand, and say so."""
    at_hand = AtHand(workspace)
    for fit, cells in work.items():
        if moved := set_aside_stale(at_hand, fit, cells):
            log(moved)
            _remove_pictures(experiments, scale, workspace, fit)


def _asked_for(work: Work, computable: Work, shown: Iterable[Fit]) -> Work:
    """Return the trainings with a cell that can be computed, those with none at all, and those of pictures."""
    asked_for = {fit: computable[fit] for fit in work if computable[fit] or not work[fit]}
    return asked_for | {fit: computable.get(fit, []) for fit in shown}


def _remove_pictures(experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, fit: Fit) -> None:
    """Remove the pictures of a training whose images or weights are others now; they are drawn again."""
    for experiment in experiments:
        if experiment.pictures and experiment.pictures.fit(scale) == fit:
            workspace.pictures(experiment.name).unlink(missing_ok=True)


def _small_jobs(
    experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, only: Sequence[str]
) -> tuple[list[ComputePictures], list[ComputeFacts]]:
    """Make the jobs of a few images each, which run in this process."""
    selected = [experiment for experiment in experiments if _is_selected(experiment, scale, only)]
    pictures = [ComputePictures(workspace, experiment, scale) for experiment in selected]
    return pictures, [ComputeFacts(workspace, experiment, scale) for experiment in selected]


def _leave_out_what_lacks(work: Work, workspace: Workspace, log: Callable[[str], None]) -> Work:
    """Leave out the generic methods without a prior or a package, and log what they need."""
    needs: dict[str, dict[str, None]] = {}  # what each method needs, in order
    computable: Work = {}
    for fit, cells in work.items():
        lacking = {method: workspace.lacks(cell) for method, cell in _one_of_each_method(cells).items()}
        for method, what in lacking.items():
            if what:
                needs.setdefault(method, {})[what] = None
        computable[fit] = [cell for cell in cells if not lacking[cell.method]]
    for method, reasons in needs.items():
        log(f"{method} is left out: {'; '.join(reasons)}.")
    return computable


def _one_of_each_method(cells: Iterable[Cell]) -> dict[str, Cell]:
    return {cell.method: cell for cell in cells}


def gather(experiments: Sequence[Experiment], scale: Scale, only: Sequence[str] = (), seeds: int | None = None) -> Work:
    """Collect the cells by their training, each once.

    Every pattern must match something. Trainings after the first `seeds` of each network are left out.
    """
    for pattern in only:
        if not _gather(experiments, scale, [pattern]):
            raise InputError(f"Nothing fits --only {pattern}. {_choices(experiments, scale)}")
    work = _gather(experiments, scale, only)
    return {fit: cells for fit, cells in work.items() if seeds is None or fit.seed < SEED + seeds}


def _gather(experiments: Sequence[Experiment], scale: Scale, only: Sequence[str]) -> Work:
    work: dict[Fit, dict[Cell, None]] = {}
    for experiment in experiments:
        for fit in experiment.fits(scale):
            if _matches(fit.name, only):
                work.setdefault(fit, {})
        for cell in experiment.cells(scale):
            if _matches(str(cell), only):
                work.setdefault(cell.fit, {})[cell] = None
    return {fit: list(cells) for fit, cells in work.items()}


def _choices(experiments: Sequence[Experiment], scale: Scale) -> str:
    """Say in a sentence what --only can match."""
    fits = [fit.name for experiment in experiments for fit in experiment.fits(scale)]
    cells = [cell for experiment in experiments for cell in experiment.cells(scale)]
    if not fits:
        return "There are no trainings and no cells to choose from."
    example = f"; a cell is called '{cells[0]}'" if cells else ""
    return f"The trainings are {', '.join(dict.fromkeys(fits))}{example}."


def progress(workspace: Workspace, work: Work) -> str:
    """Count the cells that are recorded, missing, or of losses that were not reached."""
    cells = [cell for group in work.values() for cell in group]
    recorded = sum(workspace.store.find_or_best(cell) is not None for cell in cells)
    missing = _count_missing(workspace, work)
    untrained = [fit.name for fit in needing_a_network(work) if not workspace.store.has_finished(fit)]
    parts = [f"{recorded} of {len(cells)} cells recorded"]
    if missing:
        parts.append(f"{missing} missing")
    if not_reached := len(cells) - recorded - missing:
        parts.append(describe_not_reached(not_reached))
    if untrained:
        parts.append(f"still to train: {', '.join(untrained)}")
    return ", ".join(parts) + "."


def needing_a_network(work: Work) -> list[Fit]:
    """Return the trainings that are asked for themselves, or for a method that sees their network."""
    needing = []
    for fit, cells in work.items():
        if not cells or any(cell.sees_network for cell in cells):
            needing.append(fit)
    return needing


def seconds_recorded(workspace: Workspace, work: Work) -> str:
    """Say how long what is recorded took, all runs together; nothing if nothing is recorded."""
    store = workspace.store
    trainings = [facts["seconds"] for fit in work if (facts := store.training(fit))]
    cells = {cell.key: cell for own in work.values() for cell in own}.values()
    measured = [record.seconds for cell in cells if (record := store.find_or_best(cell))]
    if not trainings and not measured:
        return ""
    return f" They took {sum(trainings):.0f} s of training and {sum(measured):.0f} s of measuring."


def describe_not_reached(cells: int) -> str:
    """Describe cells that are neither recorded nor missing."""
    return f"{cells} of losses that were not reached"


def _count_missing(workspace: Workspace, work: Work) -> int:
    return sum(workspace.store.is_missing(cell) for cells in work.values() for cell in cells)


def _is_selected(experiment: Experiment, scale: Scale, only: Sequence[str]) -> bool:
    return not only or any(_matches(fit.name, only) for fit in experiment.fits(scale))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, f"*{pattern}*") for pattern in patterns)
