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
from recollect.per_image import PerImage
from recollect.recovery import Stop

CONVERGED_MSE = 1e-9  # successive estimates closer than this (MSE) ...
CALM_ROUNDS = 3  # ... this many times running: the paper's stopping rule


@dataclass(frozen=True, eq=False)
class Member(PerImage):
    """An estimate on a cycle, and how far the model moves it."""

    estimate: Tensor
    degradation: Degradation
    moved: Tensor  # |f(x) - x|^2 over the image's values

    def replaced(self, new: Member, where: Tensor) -> Member:
        """Take the new member of the images that `where` marks."""
        rows = torch.arange(len(self), device=where.device)
        return Member.join([self, new])[rows + len(self) * where]


@dataclass(frozen=True, eq=False)
class BlindBatch(Active):
    """The degradation estimate is all that rounds carry over; the rest decides when to stop and what to return."""

    y: Tensor
    calm: Tensor  # rounds running with a change below CONVERGED_MSE
    seen: Tensor  # fingerprints of all earlier degradation estimates
    limit: Tensor  # rounds, of each image
    lap: Tensor  # rounds left of the lap in which the members of a cycle are compared
    least_moved: Member  # of those so far


@dataclass(frozen=True)
class Blind(Method):
    """The attack of the paper: rounds of ADMM with the current mask estimate, then a refit of that estimate.

    Masks may repeat in a cycle. The image then takes one more lap, and the member with the smallest |f(x) - x| is
    returned.

    `Blind()(f, y)` returns a `Recovery`.

    Args:
        gamma: How far an estimate may depart from the damaged image.
        steps: ADMM steps of a round.
        limit: The largest number of rounds.
        start: Makes the first mask estimate from y: `half_kept` or `all_erased` of `recollect.degradation`.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> recovery = recollect.Blind(limit=2)(lambda x: x.clamp(0, 1), seen.y)
        >>> recovery.estimate.shape
        torch.Size([2, 3, 8, 8])
    """

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
    version: ClassVar[int] = 2  # 1 returned the member at which a cycle was noticed

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
        limits, zeros = torch.full_like(batch.index, self.limit), torch.zeros_like(batch.index)
        moved = torch.full(zeros.shape, torch.inf, dtype=y.dtype, device=f.device)
        least = Member(batch.estimate, batch.degradation, moved)
        return BlindBatch(
            **vars(replace(batch, cycle=zeros)), y=batch.estimate, calm=zeros, seen=seen, limit=limits, lap=zeros,
            least_moved=least,
        )  # fmt: skip

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
        batch = _end(_notice_cycle(batch, theta.fingerprint()))
        batch = _compare_members(f, batch)
        return replace(batch, stop=torch.where(finite, batch.stop, Stop.DIVERGED))


def _notice_cycle(batch: BlindBatch, fingerprint: Tensor) -> BlindBatch:
    """Begin the lap of images whose degradation estimate equals an earlier one.

    One equal to the last is no cycle: it repeats for ever. Nor is one where the paper's rule is about to end an image.
    """
    rounds = torch.arange(batch.seen.shape[1], device=fingerprint.device)
    equal = (batch.seen == fingerprint[:, None]) & (rounds < batch.rounds[:, None])
    length = batch.rounds - torch.where(equal, rounds, -1).max(1).values
    assert batch.cycle is not None
    begins = equal.any(1) & (length > 1) & (batch.calm == 0) & (batch.cycle == 0)
    return replace(
        batch,
        cycle=torch.where(begins, length, batch.cycle),
        lap=torch.where(begins, length - 1, (batch.lap - 1).clamp(min=0)),
        seen=batch.seen.scatter(1, batch.rounds[:, None], fingerprint[:, None]),
    )


def _end(batch: BlindBatch) -> BlindBatch:
    """Stop images that have converged, have been around their cycle, or have reached the limit."""
    assert batch.cycle is not None
    now, last = (batch.seen.gather(1, batch.rounds[:, None] - back)[:, 0] for back in (0, 1))
    at_limit = batch.rounds >= batch.limit
    around = (batch.cycle > 0) & ((batch.lap == 0) | at_limit)
    converged = (now == last) | (batch.calm >= CALM_ROUNDS)
    stop = torch.where(at_limit, Stop.LIMIT, Stop.RUNNING)
    stop = torch.where(around, Stop.CYCLE, stop)
    stop = torch.where(converged, Stop.CONVERGED, stop)
    return replace(batch, stop=stop, cycle=torch.where(converged, 0, batch.cycle))


def _compare_members(f: Runtime, batch: BlindBatch) -> BlindBatch:
    """Keep the member of a cycle that the model moves least; an image that ends there takes it as its answer."""
    x, theta = batch.estimate, batch.degradation
    assert batch.cycle is not None
    assert theta is not None
    cycling = batch.cycle > 0
    rows = torch.nonzero(cycling)[:, 0]
    if not len(rows):
        return batch
    moved = torch.full_like(batch.least_moved.moved, torch.inf)
    moved[rows] = mean_square(f(x[rows]) - x[rows])
    member, is_first = Member(x, theta, moved), batch.lap == batch.cycle - 1
    least = batch.least_moved.replaced(member, cycling & (is_first | (moved < batch.least_moved.moved)))
    answer = member.replaced(least, batch.stop == Stop.CYCLE)
    return replace(
        batch, least_moved=least, estimate=answer.estimate, degradation=answer.degradation, steps=batch.steps + cycling
    )
