"""Computing experiments: their cells, gathered by the training they need, and handed to a runner."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch

import torch

from recollect.diffusion import can_open_priors
from recollect.distributed.jobs import Budget, Job, Runner, Tell, in_this_process
from recollect.errors import InputError
from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.fit import Bench
from recollect.paper.measure import FindFacts, Measure, TakePictures
from recollect.paper.scales import Scale


def run(
    experiments: Sequence[Experiment], scale: Scale, bench: Bench, *, only: Sequence[str] = (),
    budget: Budget | None = None, tell: Tell = lambda _: None, runner: Runner = in_this_process,
    device: torch.device | None = None,
) -> bool:  # fmt: skip
    """Compute what is missing; whether all of it is there now. `only` are patterns on trainings or cells.

    `device` is where the runner's machines compute, if not where this one does.
    """
    budget, began = budget or Budget(), time.monotonic()
    work = gather(experiments, scale, only)
    chosen = [e for e in experiments if not only or any(_chosen(fit.name, only) for fit in e.fits(scale))]
    possible = {
        fit: [cell for cell in cells if cell.sees_network or has_prior(bench, fit)] for fit, cells in work.items()
    }
    if possible != work:
        tell(
            f"{GENERIC} is left out: {'; '.join(what_is_missing(bench, (f for f in work if work[f] != possible[f])))}."
        )
    pictures = [TakePictures(bench, experiment, scale) for experiment in chosen]
    shown = {job.fit: None for job in pictures if job.fit}
    there = replace(bench, device=device or bench.device)
    jobs = [Measure(there, fit, possible.get(fit, []), fit in shown) for fit in {**work, **shown}]
    few: list[Job] = [*pictures, *(FindFacts(bench, experiment, scale) for experiment in chosen)]
    measured = runner(jobs, budget, tell)
    done = in_this_process(few, budget, tell) and measured  # a few images: not worth sending; also after a failure
    tell(f"{time.monotonic() - began:.0f} s; {progress(bench, work)}")
    return done and not any(bench.results.missing(cell) for cells in possible.values() for cell in cells)


def has_prior(bench: Bench, fit: Fit) -> bool:
    """Whether the images of a training can be restored generically on this machine."""
    folder = bench.prior_folder(fit.images)
    return can_open_priors() and folder is not None and folder.is_dir()


def what_is_missing(bench: Bench, fits: Iterable[Fit]) -> list[str]:
    """For the generic method on these, in words."""
    if not can_open_priors():
        return ["it needs diffusers"]
    folders = {fit.images.name: bench.prior_folder(fit.images) for fit in fits}
    return [f"for {images} it needs a prior in {folder} (docs/priors.md)" for images, folder in folders.items()]


def gather(experiments: Sequence[Experiment], scale: Scale, only: Sequence[str] = ()) -> dict[Fit, list[Cell]]:
    """The cells by their training, each once, however many experiments share it; each pattern must fit something."""
    if len(only) > 1:
        for pattern in only:
            gather(experiments, scale, [pattern])
    work: dict[Fit, dict[Cell, None]] = {}
    for experiment in experiments:
        for fit in experiment.fits(scale):
            if _chosen(fit.name, only):
                work.setdefault(fit, {})
        for cell in experiment.cells(scale):
            if _chosen(str(cell), only):
                work.setdefault(cell.fit, {})[cell] = None
    if only and not work:
        raise InputError(f"Nothing fits --only {' '.join(only)}. {_names(experiments, scale)}")
    return {fit: list(cells) for fit, cells in work.items()}


def _names(experiments: Sequence[Experiment], scale: Scale) -> str:
    """What --only can be like, in a sentence."""
    fits = {fit.name: None for experiment in experiments for fit in experiment.fits(scale)}
    example = next((str(cell) for experiment in experiments for cell in experiment.cells(scale)), "")
    if not fits:
        return "There are no trainings and no cells to choose from."
    return f"The trainings are {', '.join(fits)}" + (f"; a cell is called '{example}'." if example else ".")


def out_of_reach(cells: int) -> str:
    """Words for cells that are neither recorded nor missing; none for none."""
    return f"{cells} of losses that were not reached" if cells else ""


def progress(bench: Bench, work: dict[Fit, list[Cell]]) -> str:
    """How much of the work is recorded, out of reach of its training, or still to be done."""
    cells = [cell for some in work.values() for cell in some]
    recorded = sum(bench.results.best_of(cell) is not None for cell in cells)
    missing = sum(bench.results.missing(cell) for cell in cells)
    untrained = [fit.name for fit in work if not (bench.results.training(fit) or {}).get("finished")]
    words = [f"{recorded} of {len(cells)} cells recorded", f"{missing} missing" if missing else ""]
    words.append(out_of_reach(len(cells) - recorded - missing))
    words.append(f"still to train: {', '.join(untrained)}" if untrained else "")
    return ", ".join(filter(None, words)) + "."


def _chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatch(name, f"*{pattern}*") for pattern in only)
