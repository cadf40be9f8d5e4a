"""The paper's method: recover the image and estimate its degradation in turns (Abitbul & Dar 2024, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Degradation, Start, half_kept
from recollect.engine import Active, Runtime
from recollect.errors import InputError
from recollect.image_values import all_finite, mean_square, per_image
from recollect.methods.admm import check_admm, solve
from recollect.methods.base import Method
from recollect.recovery import Stop

CONVERGED_MSE = 1e-9  # successive estimates closer than this (MSE) ...
CALM_ROUNDS = 3  # ... this many times running: the paper's stopping rule


@dataclass(frozen=True, eq=False)
class BlindBatch(Active):
    """The degradation estimate is all that rounds carry over; the rest decides when to stop."""

    y: Tensor
    calm: Tensor  # rounds running with a change below CONVERGED_MSE
    seen: Tensor  # fingerprints of all earlier degradation estimates
    limit: Tensor  # rounds, of each image


@dataclass(frozen=True)
class Blind(Method):
    """Rounds of ADMM with the current degradation estimate, then a refit of that estimate, from `start(y)`."""

    gamma: float = 0.5
    steps: int = 40
    limit: int = 100
    start: Start = half_kept

    name: ClassVar[str] = "blind"
    summary: ClassVar[str] = "the attack of the paper: recovers image and mask in turns and knows neither"
    label: ClassVar[str] = "blind (mask unknown)"
    in_rounds: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    companion: ClassVar[str] = "zero-rule"
    headline_rank: ClassVar[int] = 2
    colour: ClassVar[str | None] = "blue"
    order: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_admm(self.gamma, self.steps)
        if not callable(self.start):
            raise InputError(
                "start is a function that makes the first estimate of the degradation from y, such as "
                f"recollect.degradation.half_kept or all_erased; got {self.start!r}."
            )
        if not isinstance(self.limit, int) or self.limit < 1:
            raise InputError(f"The limit is a number of rounds, 1 or more; got {self.limit}.")

    def begin(self, f: Runtime, y: Tensor, truth: Degradation | None, rows: slice) -> BlindBatch:
        start = self.start(y[rows])
        if not isinstance(start, Degradation):
            raise InputError(f"start(y) gives a degradation like Erasure, not a {type(start).__name__}.")
        batch = Active.begin(y, start.expand(y[rows]), rows, f.device)
        assert batch.degradation is not None
        seen = torch.zeros(len(batch), self.limit + 1, dtype=torch.int64, device=f.device)
        seen[:, 0] = batch.degradation.fingerprint()
        limits = torch.full_like(batch.index, self.limit)
        calm = torch.zeros_like(batch.index)
        return BlindBatch(**vars(batch), y=batch.estimate, calm=calm, seen=seen, limit=limits)

    def step(self, f: Runtime, batch: BlindBatch) -> BlindBatch:
        """One round: ADMM with the current degradation estimate, then a refit of that estimate."""
        y, theta = batch.y, batch.degradation
        assert theta is not None
        x = solve(f, y, theta, gamma=self.gamma, steps=self.steps)
        finite = all_finite(x)
        x = torch.where(per_image(finite, x), x, batch.estimate)
        theta = theta.refit(x, y)
        change = mean_square(x - batch.estimate)
        calm = torch.where((change < CONVERGED_MSE) & (batch.rounds > 0), batch.calm + 1, 0)
        batch = replace(
            batch, estimate=x, degradation=theta, rounds=batch.rounds + 1, steps=batch.steps + self.steps, calm=calm
        )
        stop, seen = self._why_stop(batch, theta.fingerprint())
        return replace(batch, stop=torch.where(finite, stop, Stop.DIVERGED), seen=seen)

    def _why_stop(self, batch: BlindBatch, fingerprint: Tensor) -> tuple[Tensor, Tensor]:
        """Say which images have converged, cycle or reached the limit.

        An estimate equal to the last one repeats for ever: converged. One equal to an earlier one is a cycle, unless
        the paper's rule is about to end the image.
        """
        rounds = batch.rounds[:, None]
        earlier = torch.arange(batch.seen.shape[1], device=rounds.device) < rounds
        before = (batch.seen == fingerprint[:, None]) & earlier
        unchanged = before.gather(1, rounds - 1)[:, 0]
        stop = torch.where(batch.rounds >= batch.limit, Stop.LIMIT, Stop.RUNNING)
        stop = torch.where(before.any(1) & (batch.calm == 0), Stop.CYCLE, stop)
        stop = torch.where(unchanged | (batch.calm >= CALM_ROUNDS), Stop.CONVERGED, stop)
        return stop, batch.seen.scatter(1, rounds, fingerprint[:, None])
