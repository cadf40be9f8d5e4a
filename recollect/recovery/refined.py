"""Beyond the paper: its blind method, then a long run with the mask it found, made equal across channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Degradation, half_kept
from recollect.errors import InputError
from recollect.recovery.admm import KnownMask
from recollect.recovery.blind import Blind
from recollect.recovery.recovery import Progress, Recovery, Stop, Trace
from recollect.recovery.running import Autoencoder, mean_square, per_image, ready

CLEARLY = 10.0  # times worse


@dataclass(frozen=True)
class Refined:
    """`Blind`, then `refine_steps` more ADMM steps with its degradation estimate tidied up and kept values pasted.

    An image keeps blind's estimate where the longer run made it clearly worse: further from a fixed point of the
    autoencoder, or from the kept values of y. The truth is never looked at.
    """

    gamma: float = 0.5
    steps: int = 40
    limit: int = 100
    start: Callable[[Tensor], Degradation] = half_kept
    refine_steps: int = 400
    paste: bool = True  # right when there is no noise

    name: ClassVar[str] = "refined"
    knows_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        Blind(self.gamma, self.steps, self.limit, self.start)  # refuses what it cannot run with
        if self.refine_steps < 1:
            raise InputError(f"At least one refining step is needed, got {self.refine_steps}.")

    def __call__(
        self,
        f: Autoencoder,
        y: Tensor,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        blind = Blind(self.gamma, self.steps, self.limit, self.start)(f, y, chunk=chunk, trace=trace)
        assert blind.degradation is not None
        theta = blind.degradation.tidied()
        longer = KnownMask(self.gamma, self.refine_steps, self.paste)
        refined = longer(f, y, theta, chunk=chunk, progress=progress)
        before = self._misfit(f, blind.estimate, y, blind.degradation, chunk)
        after = self._misfit(f, refined.estimate, y, theta, chunk)
        better = (after <= CLEARLY * before) & (refined.stop != Stop.DIVERGED)
        return replace(
            blind,
            estimate=torch.where(per_image(better, y), refined.estimate, blind.estimate),
            degradation=theta,
            steps=blind.steps + self.refine_steps,
        )

    def _misfit(self, f: Autoencoder, x: Tensor, y: Tensor, theta: Degradation, chunk: int | None) -> Tensor:
        """How far one application of f moves each image, plus how far it is from y."""
        with ready(f, x, chunk) as f:
            parts = [part.to(f.device) for part in x.split(f.chunk)]
            moved = torch.cat([mean_square(f(part.clone()) - part) for part in parts]).to(x.device)
        return moved + mean_square(theta.apply(x) - y)
