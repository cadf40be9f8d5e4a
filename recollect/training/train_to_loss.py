"""Training to perfect fit: a loss reached for certain, a checkpoint at each milestone on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, is_number
from recollect.images import Images
from recollect.training.loop import Run
from recollect.training.monitor import Limits
from recollect.training.outcome import Progress, Training
from recollect.training.recipe import Recipe

MILESTONES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


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
) -> Training:
    """Train until the loss over all images is at or below `until`; resumes what is in the folder `out`.

    Limits count from the first start, and the rate falls in time for them. `pause_after` are seconds of this call,
    after which it stops for now: it is saved, and the same call goes on. `stop` is asked after every step, and ends it
    likewise.
    """
    if not isinstance(network, nn.Module):
        raise InputError(f"A network to train is an nn.Module, not a {type(network).__name__}.")
    if not all(is_number(loss) and 0 < loss < math.inf for loss in (until, *milestones)):
        raise InputError(f"A loss to reach must be positive, got {until!r} with milestones {tuple(milestones)}.")
    if not all(limit is None or is_number(limit) for limit in (max_seconds, max_steps, pause_after)):
        raise InputError(
            f"A limit is a number, got {max_seconds!r} seconds, {max_steps!r} steps and a pause after {pause_after!r}."
        )
    images = Images.of(images)
    limits = Limits(*(math.inf if limit is None else limit for limit in (max_seconds, max_steps, pause_after)))
    where = choose_device(device)
    recipe = recipe or Recipe.for_network(network, len(images))
    run = Run(network.to(where), images, recipe, Path(out) if out else None, where)
    wanted = sorted({m for m in milestones if m > until * (1 + 1e-9)} | {until}, reverse=True)
    return run.train(wanted, limits, report, stop)
