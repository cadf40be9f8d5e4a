"""The baseline of earlier work: apply the autoencoder over and over (Radhakrishnan et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.engine import Active, Runtime, run
from recollect.errors import InputError, is_number
from recollect.image_values import all_finite, mean_square, per_image
from recollect.methods.base import Method
from recollect.recovery import Progress, Recovery, Stop, Trace

QUEUED = 16


@dataclass(frozen=True)
class Iterate(Method):
    """The earlier attack: x <- f(x) from x = y, until the image settles.

    `Iterate()(f, y)` returns a `Recovery`.

    Args:
        tolerance: An image has settled when a step changes it by less than this mean square error.
        limit: The largest number of steps.

    Examples:
        >>> import torch, recollect
        >>> recovery = recollect.Iterate()(lambda x: x / 2, torch.ones(1, 3, 8, 8))
        >>> bool(recovery.estimate.max() < 1e-5)
        True
    """

    tolerance: float = 1e-12
    limit: int = 1000

    name: ClassVar[str] = "iterate"
    summary: ClassVar[str] = "the earlier attack: applies the autoencoder over and over"
    label: ClassVar[str] = "iterate"
    in_rounds: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    stops_at_limit: ClassVar[bool] = True
    headline_rank: ClassVar[int] = 1
    colour: ClassVar[str | None] = "green"
    order: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not is_number(self.tolerance) or not self.tolerance >= 0:
            raise InputError(f"The tolerance is an MSE, zero or more; got {self.tolerance!r}.")
        if not isinstance(self.limit, int) or self.limit < 1:
            raise InputError(f"The limit is a number of steps, 1 or more; got {self.limit}.")

    def recover(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        count = steps_between_checks(f.device, trace)

        def steps(batch: Active) -> Active:
            for _ in range(count):
                batch = self.step(f, batch)
            return batch

        return run(len(y), f, partial(self.begin, f, y, truth), steps, trace, progress)

    def step(self, f: Runtime, batch: Active) -> Active:
        """Apply f once; an image that has stopped stays as it is while others go on."""
        x = f(batch.estimate.clone())  # a copy, for networks that work in place
        going, finite = batch.stop == Stop.RUNNING, all_finite(x)
        steps = batch.steps + going
        stop = torch.where(steps >= self.limit, Stop.LIMIT, Stop.RUNNING)
        moved = mean_square(x - batch.estimate)
        stop = torch.where((moved < self.tolerance) | (moved == 0), Stop.CONVERGED, stop)
        stop = torch.where(finite, stop, Stop.DIVERGED)
        return replace(
            batch,
            estimate=torch.where(per_image(going & finite, x), x, batch.estimate),
            rounds=steps,
            steps=steps,
            stop=torch.where(going, stop, batch.stop),
        )


def steps_between_checks(device: torch.device, trace: Trace | None) -> int:
    """Queue several steps on a GPU before the host waits to see which images stopped; a trace sees every step."""
    return QUEUED if device.type == "cuda" and trace is None else 1
