"""Beyond the paper: further blind starts where one fails, and more steps until an answer rests, at a bounded cost."""

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

PRICE = 3  # applications of f to an image, at most, as a multiple of what blind takes for it
EXPLAINED = 1e-4  # an answer that the model moves by less (MSE) needs no other start
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
TOGETHER = 256  # images whose starts are compared at once


@dataclass(frozen=True, eq=False)
class _Answer(PerImage):
    """What was found for each image, how far the model moves it, and how badly the model and y fit it."""

    found: Recovery
    moved: Tensor
    misfit: Tensor

    def or_better(self, places: Tensor, other: _Answer) -> _Answer:
        """The better of two answers to the images at `places`; the work on both is counted."""
        better = torch.nonzero(other.misfit < self.misfit[places])[:, 0]
        order = torch.arange(len(self), device=places.device)
        order[places[better]] = len(self) + better
        best = _Answer.join([self, other])[order]
        mine, new = self.found, other.found
        rounds, steps = mine.rounds.index_add(0, places, new.rounds), mine.steps.index_add(0, places, new.steps)
        return replace(best, found=replace(best.found, rounds=rounds, steps=steps))


@dataclass(frozen=True)
class Refined:
    """`Blind`, again from `restarts` where the model does not explain its answer, and more ADMM steps from the best.

    Restarts make no assumption on what erased pixels hold. All that follows blind's first run takes at most twice
    as many steps as that, image by image. Of an image's answers the one is taken that the model moves least and that
    agrees with most of y; the truth is never looked at.
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
        blind = Blind(self.gamma, self.steps, self.limit, self.start)(f, y, chunk=chunk, trace=trace)
        best, most = self._judged(f, y, _with_plausible_mask(blind, y), chunk), PRICE * blind.steps
        if progress:
            progress(int((best.moved < EXPLAINED).sum()), len(y))
        tried: list[Tensor] = []
        for start in self.restarts if isinstance(best.found.degradation, Erasure) else ():
            begun = torch.cat([start(some).fingerprint() for some in y.split(TOGETHER)])
            rounds = ((most - best.found.steps) // 2 // self.steps).clamp(max=self.restart_rounds)  # half of what is left
            no_use = torch.stack([best.moved < EXPLAINED, rounds < 1, *(begun == earlier for earlier in tried)]).any(0)
            tried.append(begun)
            if len(left := torch.nonzero(~no_use)[:, 0]):
                watch = _carried_on(trace, left, best.found.rounds) if trace else None
                again = Blind(self.gamma, self.steps, self.restart_rounds, start)
                found = again(f, y[left], chunk=chunk, trace=watch, limits=rounds[left])
                best = best.or_better(left, self._judged(f, y[left], _with_plausible_mask(found, y[left]), chunk))
        best = self._polished(f, y, best, most, chunk)
        chosen = replace(best.found, rounds=best.found.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), chosen.rounds, chosen.estimate, chosen.degradation))
        if progress:
            progress(len(y), len(y))
        return chosen

    def _polished(self, f: Autoencoder, y: Tensor, best: _Answer, most: Tensor, chunk: int | None) -> _Answer:
        """ADMM from the best answers until they rest, kept where it improves on them; a step of `most` is the look."""
        limits = (most - best.found.steps - 1).clamp(max=self.polish_steps)
        if not len(left := torch.nonzero(limits > 0)[:, 0]):
            return best
        begun = best.found[left]
        assert begun.degradation is not None
        rested = polish(f, y[left], begun.estimate, begun.degradation, gamma=self.gamma, limits=limits[left], chunk=chunk)
        rested = replace(rested, rounds=torch.zeros_like(rested.rounds))
        return best.or_better(left, self._judged(f, y[left], rested, chunk))

    def _judged(self, f: Autoencoder, y: Tensor, found: Recovery, chunk: int | None) -> _Answer:
        """An answer, with the kept values of y where they are right, and a look at what the model makes of it."""
        assert found.degradation is not None
        x = found.degradation.paste(found.estimate, y) if self.paste else found.estimate
        with ready(f, x, chunk) as f:
            outputs = torch.cat([f(part.to(f.device, copy=True)).to(x.device) for part in x.split(f.chunk)])
        moved = mean_square(outputs - x).nan_to_num(torch.inf)
        apart = (outputs - y).square().mean(1).clamp(max=FAR**2).flatten(1).mean(1)
        return _Answer(replace(found, estimate=x, steps=found.steps + 1), moved, (moved + apart).nan_to_num(torch.inf))


def _with_plausible_mask(found: Recovery, y: Tensor) -> Recovery:
    """A pixel is kept or erased in all its channels; whatever rule found the mask, it is an erasure."""
    assert found.degradation is not None
    theta = found.degradation.plausible_refit(found.estimate, y)
    return replace(found, degradation=Erasure(theta.keep) if isinstance(theta, Erasure) else theta)


def _carried_on(trace: Trace, left: Tensor, rounds: Tensor) -> Trace:
    """The same trace for some of the images, whose rounds are counted on."""

    def watch(shot: Snapshot) -> None:
        index = left.to(shot.index.device)[shot.index]
        trace(replace(shot, index=index, round=shot.round + rounds.to(index.device)[index]))

    return watch
