"""Beyond the paper: several blind starts, each carried on until it rests; what the model explains best is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Erasure, Start, half_kept, odd_ones_kept, patches_kept
from recollect.errors import InputError, is_whole
from recollect.per_image import PerImage
from recollect.recovery.blind import Blind
from recollect.recovery.polish import polish
from recollect.recovery.recovery import Progress, Recovery, Snapshot, Stop, Trace
from recollect.recovery.running import Autoencoder, mean_square, per_image, ready

EXPLAINED = 1e-4  # an answer that the model moves by less (MSE) needs no other start
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
TOGETHER = 256  # images whose starts are compared at once


@dataclass(frozen=True, eq=False)
class _Answer(PerImage):
    """What one start led to: how badly the model and y fit it, and whether the model explains it."""

    recovery: Recovery
    misfit: Tensor
    explained: Tensor

    def or_better(self, places: Tensor, other: _Answer) -> _Answer:
        """The better of two answers to the images at `places`; the work on both is counted."""
        better = torch.nonzero(other.misfit < self.misfit[places])[:, 0]
        order = torch.arange(len(self), device=places.device)
        order[places[better]] = len(self) + better
        best = _Answer.join([self, other])[order]
        mine, new = self.recovery, other.recovery
        rounds, steps = mine.rounds.index_add(0, places, new.rounds), mine.steps.index_add(0, places, new.steps)
        return replace(best, recovery=replace(best.recovery, rounds=rounds, steps=steps))


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
        if not isinstance(self.restarts, tuple) or not all(callable(start) for start in self.restarts):
            raise InputError(
                "restarts is a tuple of functions that make a first mask from y, such as "
                f"recollect.degradation.odd_ones_kept; got {self.restarts!r}."
            )
        if not is_whole(self.polish_steps, 1):
            raise InputError(f"At least one polishing step is needed, got {self.polish_steps!r}.")

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
        best = self._answer(f, y, self.start, self.limit, chunk, trace)
        if progress:
            progress(int(best.explained.sum()), len(y))
        tried: list[Tensor] = []
        for start in self.restarts if isinstance(best.recovery.degradation, Erasure) else ():
            begun = torch.cat([start(some).fingerprint() for some in y.split(TOGETHER)])
            known = torch.stack([best.explained, *(begun == earlier for earlier in tried)]).any(0)
            left = torch.nonzero(~known)[:, 0]
            tried.append(begun)
            if len(left):
                watch = _carried_on(trace, left, best.recovery.rounds) if trace else None
                best = best.or_better(left, self._answer(f, y[left], start, self.restart_rounds, chunk, watch))
        chosen = replace(best.recovery, rounds=best.recovery.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), chosen.rounds, chosen.estimate, chosen.degradation))
        if progress:
            progress(len(y), len(y))
        return chosen

    def _answer(
        self, f: Autoencoder, y: Tensor, start: Start, limit: int, chunk: int | None, trace: Trace | None
    ) -> _Answer:
        """One start carried to its end."""
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
        return _Answer(found, (moved + apart).nan_to_num(torch.inf), moved < EXPLAINED)


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
