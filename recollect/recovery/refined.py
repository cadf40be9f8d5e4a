"""Beyond the paper: several blind starts, each carried on until it rests; what the model explains best is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Degradation, Erasure, half_kept, odd_ones_kept, patches_kept
from recollect.errors import InputError
from recollect.recovery.blind import Blind
from recollect.recovery.polish import polish
from recollect.recovery.recovery import Progress, Recovery, Snapshot, Stop, Trace
from recollect.recovery.running import Autoencoder, mean_square, per_image, ready

EXPLAINED = 1e-4  # an answer that the model moves by less (MSE) needs no other start
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
TOGETHER = 256  # images whose starts are compared at once

Start = Callable[[Tensor], Degradation]


@dataclass(frozen=True)
class Refined:
    """`Blind`, its mask made equal across channels, then more ADMM steps from its answer until that is at rest.

    Images that this leaves unexplained are tried again from `restarts`, which make no assumption on what erased
    pixels hold. Of an image's answers the one is taken that the model moves least and that agrees with most of y;
    the truth is never looked at.
    """

    gamma: float = 0.5
    steps: int = 40
    limit: int = 100
    start: Start = half_kept
    restarts: tuple[Start, ...] = (odd_ones_kept, patches_kept)  # of masks, so for erasures alone
    restart_rounds: int = 8
    polish_steps: int = 200
    paste: bool = True  # right when there is no noise

    name: ClassVar[str] = "refined"
    knows_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for rounds in (self.limit, self.restart_rounds):
            Blind(self.gamma, self.steps, rounds, self.start)  # refuses what it cannot run with
        if self.polish_steps < 1:
            raise InputError(f"At least one polishing step is needed, got {self.polish_steps}.")

    @torch.no_grad()
    def __call__(
        self,
        f: Autoencoder,
        y: Tensor,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        best, misfit, explained = self._answer(f, y, self.start, self.limit, chunk, trace)
        if progress:
            progress(int(explained.sum()), len(y))
        tried: list[Tensor] = []
        for start in self.restarts if isinstance(best.degradation, Erasure) else ():
            begun = torch.cat([start(some).fingerprint() for some in y.split(TOGETHER)])
            new = torch.stack([begun != earlier for earlier in tried]).all(0) if tried else torch.ones_like(explained)
            left = torch.nonzero(~explained & new)[:, 0]
            tried.append(begun)
            if not len(left):
                continue
            watch = _carried_on(trace, left, best.rounds) if trace else None
            found, other, good = self._answer(f, y[left], start, self.restart_rounds, chunk, watch)
            rounds, steps = (
                a.index_add(0, left, b) for a, b in [(best.rounds, found.rounds), (best.steps, found.steps)]
            )
            better = torch.nonzero(other < misfit[left])[:, 0]
            best = replace(_put(best, left[better], found[better]), rounds=rounds, steps=steps)
            misfit[left[better]], explained[left] = other[better], explained[left] | good
        best = replace(best, rounds=best.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), best.rounds, best.estimate, best.degradation))
        if progress:
            progress(len(y), len(y))
        return best

    def _answer(
        self, f: Autoencoder, y: Tensor, start: Start, limit: int, chunk: int | None, trace: Trace | None
    ) -> tuple[Recovery, Tensor, Tensor]:
        """One start carried to its end: the answer, its misfit, and whether the model explains it."""
        blind = Blind(self.gamma, self.steps, limit, start)(f, y, chunk=chunk, trace=trace)
        assert blind.degradation is not None
        theta = blind.degradation.plausible_refit(blind.estimate, y)
        rested = polish(f, y, blind.estimate, theta, gamma=self.gamma, limit=self.polish_steps, chunk=chunk)
        fine = rested.stop != Stop.DIVERGED
        x = torch.where(per_image(fine, y), rested.estimate, blind.estimate)
        found = replace(
            blind,
            estimate=theta.paste(x, y) if self.paste else x,
            degradation=Erasure(theta.keep) if isinstance(theta, Erasure) else theta,  # whatever rule found it
            steps=blind.steps + rested.steps + 1,  # and a look at what the model makes of the answer
            stop=torch.where(fine, rested.stop, blind.stop),
        )
        moved, apart = _moved(f, found.estimate, y, chunk)
        return found, moved + apart, moved < EXPLAINED


def _moved(f: Autoencoder, x: Tensor, y: Tensor, chunk: int | None) -> tuple[Tensor, Tensor]:
    """How far f moves each image, and how far the result is from y where it is not far."""
    with ready(f, x, chunk) as f:
        outputs = torch.cat([f(part.to(f.device, copy=True)).to(x.device) for part in x.split(f.chunk)])
    apart = (outputs - y).square().mean(1).clamp(max=FAR**2).flatten(1).mean(1)
    return mean_square(outputs - x), apart


def _carried_on(trace: Trace, left: Tensor, rounds: Tensor) -> Trace:
    """The same trace for some of the images, whose rounds are counted on."""

    def watch(shot: Snapshot) -> None:
        index = left.to(shot.index.device)[shot.index]
        trace(replace(shot, index=index, round=shot.round + rounds.to(index.device)[index]))

    return watch


def _put(into: Recovery, places: Tensor, rows: Recovery) -> Recovery:
    """`into` with some of its images replaced."""
    order = torch.arange(len(into), device=places.device)
    order[places] = len(into) + torch.arange(len(rows), device=places.device)
    return Recovery.join([into, rows])[order]
