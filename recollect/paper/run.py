"""Compute experiments: gather their cells by training, and hand them to a runner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch

import torch

from recollect.diffusion import can_open_priors
from recollect.distributed.jobs import Budget, Runner, in_this_process
from recollect.errors import InputError
from recollect.locks import lock_folder
from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.measure import MASKS_TOGETHER, ComputeFacts, ComputePictures, MeasureCells
from recollect.paper.scales import Scale
from recollect.paper.stale import AtHand, set_aside_stale
from recollect.paper.workspace import Workspace

Work = dict[Fit, list[Cell]]


def run(
    experiments: Sequence[Experiment], scale: Scale, workspace: Workspace, *, only: Sequence[str] = (),
    budget: Budget | None = None, log: Callable[[str], None] = lambda _: None, runner: Runner = in_this_process,
    worker_device: torch.device | None = None, masks_together: int = MASKS_TOGETHER,
) -> bool:  # fmt: skip
    """Compute what is missing; return whether nothing is missing afterwards.

    `only` holds patterns on trainings or cells. `worker_device` is where the runner's machines compute, if not where
    this one does.
    """
    budget = budget or Budget()
    work = gather(experiments, scale, only)
    with lock_folder(workspace.store.folder), lock_folder(workspace.work):
        computable = _leave_out_without_prior(work, workspace, log)
        at_hand = AtHand(workspace)
        for fit, cells in computable.items():
            if moved := set_aside_stale(at_hand, fit, cells):
                log(moved)
                _remove_pictures(experiments, scale, workspace, fit)
        pictures, facts = _small_jobs(experiments, scale, workspace, only)
        shown = [job.fit for job in pictures if job.fit]
        on_workers = replace(workspace, device=worker_device or workspace.device)
        jobs = []
        for fit in dict.fromkeys([*work, *shown]):
            jobs.append(MeasureCells(on_workers, fit, computable.get(fit, []), fit in shown, masks_together))
        all_measured = runner(jobs, budget, log)
        all_computed = in_this_process([*pictures, *facts], budget, log)  # also if a cell failed
        workspace.store.pack()
        log(f"{budget.spent:.0f} s; {progress(workspace, work)}")
        return all_measured and all_computed and not _count_missing(workspace, computable)


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


def _leave_out_without_prior(work: Work, workspace: Workspace, log: Callable[[str], None]) -> Work:
    """Leave out the generic method on images without a prior, and log what it needs."""
    computable, without_prior = dict(work), []
    for fit, cells in work.items():
        if workspace.has_prior(fit.images) or all(cell.sees_network for cell in cells):
            continue
        computable[fit] = [cell for cell in cells if cell.sees_network]
        without_prior.append(fit)
    if without_prior:
        log(f"{GENERIC} is left out: {'; '.join(_needed_for_prior(workspace, without_prior))}.")
    return computable


def _needed_for_prior(workspace: Workspace, fits: Iterable[Fit]) -> list[str]:
    """Say what the generic method needs and does not find."""
    if not can_open_priors():
        return ["it needs diffusers"]
    folders = {fit.images.name: workspace.prior_folder(fit.images) for fit in fits}
    return [
        f"for {images} it needs a prior in {folder} (docs/concepts/generic-baseline.md)"
        for images, folder in folders.items()
    ]


def gather(experiments: Sequence[Experiment], scale: Scale, only: Sequence[str] = ()) -> Work:
    """Collect the cells by their training, each once; every pattern must match something."""
    for pattern in only:
        if not _gather(experiments, scale, [pattern]):
            raise InputError(f"Nothing fits --only {pattern}. {_choices(experiments, scale)}")
    return _gather(experiments, scale, only)


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
    untrained = [fit.name for fit in work if not workspace.store.has_finished(fit)]
    parts = [f"{recorded} of {len(cells)} cells recorded"]
    if missing:
        parts.append(f"{missing} missing")
    if not_reached := len(cells) - recorded - missing:
        parts.append(describe_not_reached(not_reached))
    if untrained:
        parts.append(f"still to train: {', '.join(untrained)}")
    return ", ".join(parts) + "."


def describe_not_reached(cells: int) -> str:
    """Describe cells that are neither recorded nor missing."""
    return f"{cells} of losses that were not reached"


def _count_missing(workspace: Workspace, work: Work) -> int:
    return sum(workspace.store.is_missing(cell) for cells in work.values() for cell in cells)


def _is_selected(experiment: Experiment, scale: Scale, only: Sequence[str]) -> bool:
    return not only or any(_matches(fit.name, only) for fit in experiment.fits(scale))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, f"*{pattern}*") for pattern in patterns)
