"""Train a network to a loss, with a checkpoint at each milestone on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, is_number
from recollect.files.locks import lock_folder
from recollect.images import Images
from recollect.training.loop import TrainingLoop
from recollect.training.monitor import Limits
from recollect.training.outcome import Progress, Training
from recollect.training.recipe import Recipe
from recollect.training.run_folder import RunFolder
from recollect.training.state import RunState

MILESTONES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
TENSORS_PER_WEIGHT = 4  # in a saved state: weights, average, best, momentum


def train_to_loss(
    network: nn.Module,
    images: Images,
    until: float = 1e-8,
    milestones: Sequence[float] = MILESTONES,
    *,
    recipe: Recipe | None = None,
    out: str | Path | None = None,
    device: torch.device | str | None = None,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    pause_after: float | None = None,
    report: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Training:
    """Train until the loss over all images is at or below `until`; continue a run in the folder `out`.

    Limits count from the first start. An annealed learning rate reaches zero before the limit.

    Args:
        network: The network; it is trained in place.
        images: The training images.
        until: The mean square error to reach.
        milestones: Losses on the way at which a checkpoint is saved.
        recipe: Optimizer and schedule. Defaults to `Recipe.for_network`.
        out: Folder for checkpoints and the loss curve. The same call resumes a run there.
        device: Where to train. Defaults to CUDA if available.
        max_seconds: The longest time of the training.
        max_steps: The largest number of steps.
        pause_after: Seconds of this call, after which the run is saved; the same call continues it.
        report: Called with the progress of the training.
        stop: Asked after every step; True saves the run and ends the call.
        clock: Gives the time in seconds.

    Returns:
        The trained network, its loss, the milestones and why the training ended.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> network = recollect.FullyConnected(images.shape, layers=2, width=32)
        >>> recollect.train_to_loss(network, images, until=1e-3).reached
        True
    """
    limits = _limits(max_seconds, max_steps, pause_after)
    losses = _losses_to_reach(until, milestones)
    if not isinstance(network, nn.Module):
        raise InputError(f"A network to train is an nn.Module, not a {type(network).__name__}.")
    images = Images.of(images)
    chosen = choose_device(device)
    recipe = recipe or Recipe.for_network(network, len(images))
    state = RunState.start(network.to(chosen), images, recipe, chosen)
    state_bytes = TENSORS_PER_WEIGHT * sum(weight.nbytes for weight in state.stepper.weights)
    folder = RunFolder(Path(out) if out else None, clock, state_bytes)
    with lock_folder(out) if out else nullcontext():
        folder.resume(state)
        return TrainingLoop(state, folder, losses, limits, clock=clock, report=report, stop=stop).run()


def _losses_to_reach(until: float, milestones: Sequence[float]) -> list[float]:
    """Return the milestones above the last loss, and that loss, highest first."""
    if not all(is_number(loss) and 0 < loss < math.inf for loss in (until, *milestones)):
        raise InputError(f"A loss to reach must be positive, got {until!r} with milestones {tuple(milestones)}.")
    above = {loss for loss in milestones if loss > until * (1 + 1e-9)}
    return sorted({*above, until}, reverse=True)


def _limits(max_seconds: float | None, max_steps: int | None, pause_after: float | None) -> Limits:
    limits = (max_seconds, max_steps, pause_after)
    if not all(limit is None or is_number(limit) for limit in limits):
        raise InputError(
            f"A limit is a number, got {max_seconds!r} seconds, {max_steps!r} steps and a pause after {pause_after!r}."
        )
    return Limits(*(math.inf if limit is None else limit for limit in limits))
