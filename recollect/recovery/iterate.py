"""The baseline of earlier work: apply the autoencoder over and over (Radhakrishnan et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.errors import InputError, is_number
from recollect.recovery.recovery import Progress, Recovery, Stop, Trace
from recollect.recovery.running import (
    Autoencoder,
    InWork,
    Ready,
    all_finite,
    mean_square,
    per_image,
    ready,
    work_through,
)


@dataclass(frozen=True)
class Iterate:
    """x <- f(x) from x = y, until a step changes the image by less than `tolerance` (MSE) or `limit` steps."""

    tolerance: float = 1e-12
    limit: int = 1000

    name: ClassVar[str] = "iterate"
    knows_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_number(self.tolerance) or not self.tolerance >= 0:
            raise InputError(f"The tolerance is an MSE, zero or more; got {self.tolerance!r}.")
        if not isinstance(self.limit, int) or self.limit < 1:
            raise InputError(f"The limit is a number of steps, 1 or more; got {self.limit}.")

    def __call__(
        self,
        f: Autoencoder,
        y: Tensor,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        with ready(f, y, chunk) as f:

            def enter(some: slice) -> InWork:
                return InWork.begin(y, None, some, f.device)

            done = work_through(len(y), f, enter, lambda batch: self._step(f, batch), trace, progress)
        return done.to(y.device)

    def _step(self, f: Ready, batch: InWork) -> InWork:
        x = f(batch.estimate.clone())  # a copy, for networks that work in place
        finite = all_finite(x)
        steps = batch.steps + 1
        stop = torch.where(steps >= self.limit, Stop.LIMIT, Stop.RUNNING)
        moved = mean_square(x - batch.estimate)
        stop = torch.where((moved < self.tolerance) | (moved == 0), Stop.CONVERGED, stop)
        return replace(
            batch,
            estimate=torch.where(per_image(finite, x), x, batch.estimate),
            rounds=steps,
            steps=steps,
            stop=torch.where(finite, stop, Stop.DIVERGED),
        )
