"""Beyond the paper: further blind starts where one fails, and more steps until an answer rests, at a bounded cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import Degradation, Erasure, Start, all_erased, half_kept, odd_ones_kept, patches_kept
from recollect.devices.transfers import to_device
from recollect.engine import Runtime
from recollect.errors import InputError, is_whole
from recollect.image_values import mean_square
from recollect.methods.base import Method
from recollect.methods.blind import Blind, BlindBatch
from recollect.methods.polish import polish
from recollect.per_image import PerImage
from recollect.recovery import Progress, Recovery, Snapshot, Trace

JUDGING = 1  # application of f to an answer, which shows whether the model explains it
PRICE = 3  # applications of f to an image, at most, as a multiple of what blind takes for it
EXPLAINED = 1e-4  # an answer that the model moves by less (MSE) needs no other start
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
TOGETHER = 256  # images whose starts are compared at once


@dataclass(frozen=True, eq=False)
class _Answer(PerImage):
    """What was found for each image, how far the model moves it, and how far what it makes of it is from y."""

    recovery: Recovery
    moved: Tensor
    apart: Tensor

    @property
    def explained(self) -> Tensor:
        return self.moved < EXPLAINED

    @property
    def misfit(self) -> Tensor:
        return self.moved + self.apart

    def or_else(self, places: Tensor, other: _Answer, better: Tensor) -> _Answer:
        """The other answers to the images at `places`, where they are better; the work on both is counted."""
        order = torch.arange(len(self), device=places.device)
        order[places[better]] = len(self) + torch.nonzero(better)[:, 0]
        best = _Answer.join([self, other])[order]
        mine, new = self.recovery, other.recovery
        rounds, steps = mine.rounds.index_add(0, places, new.rounds), mine.steps.index_add(0, places, new.steps)
        return replace(best, recovery=replace(best.recovery, rounds=rounds, steps=steps))


@dataclass(frozen=True)
class Refined(Method):
    """`Blind`, again from `restarts` where the model does not explain its answer, and more steps from the best.

    Restarts make no assumption on what erased pixels hold. With what follows it takes at most three times the steps
    of blind's run, image by image. An answer is replaced where another's distances to what the model makes of it and
    from there to y fall together; at the end, without noise, where the first does. The truth is never looked at.
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
    summary: ClassVar[str] = "the strongest attack: blind, restarted where the model rejects its answer, then polished"
    label: ClassVar[str] = "refined (mask unknown)"
    in_rounds: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    leads: ClassVar[int] = 3
    colour: ClassVar[str | None] = "orange"
    order: ClassVar[int] = 2

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

    def recover(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        blind = Blind(self.gamma, self.steps, self.limit, self.start).recover(f, y, truth, trace, None)
        best, most = self._judged(f, y, _plausible(blind, y)), PRICE * blind.steps
        if progress:
            progress(int(best.explained.sum()), len(y))
        if isinstance(best.recovery.degradation, Erasure):
            few = torch.where(best.explained, 0, self.steps // 2)  # which can save a restart
            best = self._polished(f, y, best, few, most)
            best = self._restarted(f, y, best, most, trace)
        best = self._polished(f, y, best, torch.full_like(most, self.polish_steps), most)
        chosen = replace(best.recovery, rounds=best.recovery.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), chosen.rounds, chosen.estimate, chosen.degradation))
        if progress:
            progress(len(y), len(y))
        return chosen

    def _restarted(self, f: Runtime, y: Tensor, best: _Answer, most: Tensor, trace: Trace | None) -> _Answer:
        """Try other starts for images that are not explained, as many rounds as are left of `most` steps."""
        tried: list[Tensor] = []
        for start in self.restarts:
            begun = torch.cat([start(part).fingerprint() for part in y.split(TOGETHER)])
            rounds = ((most - best.recovery.steps - JUDGING) // self.steps).clamp(max=self.restart_rounds)
            no_use = torch.stack([best.explained, rounds < 1, *(begun == earlier for earlier in tried)]).any(0)
            tried.append(begun)
            if len(left := torch.nonzero(~no_use)[:, 0]):
                watch = _continued(trace, left, best.recovery.rounds) if trace else None
                again = Restart(self.gamma, self.steps, self.restart_rounds, start, rounds[left])
                recovery = again.recover(f, y[left], None, watch, None)
                other = self._judged(f, y[left], _plausible(recovery, y[left]))
                best = best.or_else(left, other, other.misfit < best.misfit[left])
        return best

    def _polished(self, f: Runtime, y: Tensor, best: _Answer, limits: Tensor, most: Tensor) -> _Answer:
        """Carry the best answers on until they rest; a y with noise no longer counts."""
        limits = torch.minimum(limits, most - best.recovery.steps - JUDGING)
        left = torch.nonzero(limits > 0)[:, 0]
        if not len(left):
            return best
        begun = best.recovery[left]
        assert begun.degradation is not None
        theta = begun.degradation if self.paste else all_erased(y[left])  # with all erased v <- f(v)
        rested = polish(f, y[left], begun.estimate, theta, gamma=self.gamma, limits=limits[left])
        nothing = torch.zeros_like(rested.rounds)
        other = self._judged(f, y[left], replace(rested, degradation=begun.degradation, rounds=nothing))
        less = other.moved < best.moved[left] if self.paste else other.misfit < best.misfit[left]
        return best.or_else(left, other, less)

    def _judged(self, f: Runtime, y: Tensor, recovery: Recovery) -> _Answer:
        """Paste the kept values of y, where these are right, and measure what the model makes of the answer."""
        assert recovery.degradation is not None
        x = recovery.degradation.paste(recovery.estimate, y) if self.paste else recovery.estimate
        changes, apart = [], []
        for part, damaged in zip(x.split(f.chunk), y.split(f.chunk), strict=True):
            output = to_device(f(to_device(part, f.device).clone()), x.device)
            changes.append(mean_square(output - part))
            apart.append((output - damaged).square().mean(1).clamp(max=FAR**2).flatten(1).mean(1))
        distances = (torch.cat(parts).nan_to_num(torch.inf) for parts in (changes, apart))
        return _Answer(replace(recovery, estimate=x, steps=recovery.steps + JUDGING), *distances)


@dataclass(frozen=True, eq=False)
class Restart(Blind):
    """`Blind` with a limit of rounds for each image."""

    limits: Tensor | None = None

    def begin(self, f: Runtime, y: Tensor, truth: Degradation | None, rows: slice) -> BlindBatch:
        assert self.limits is not None
        return replace(super().begin(f, y, truth, rows), limit=to_device(self.limits[rows], f.device))


def _plausible(recovery: Recovery, y: Tensor) -> Recovery:
    """A pixel is kept or erased in all its channels; whatever rule estimated the mask, it is an erasure."""
    assert recovery.degradation is not None
    theta = recovery.degradation.plausible_refit(recovery.estimate, y)
    if isinstance(theta, Erasure):
        theta = Erasure(theta.keep)
    return replace(recovery, degradation=theta)


def _continued(trace: Trace, left: Tensor, rounds: Tensor) -> Trace:
    """Trace some of the images, whose rounds are counted on."""

    def watch(snapshot: Snapshot) -> None:
        index = left.to(snapshot.index.device)[snapshot.index]
        trace(replace(snapshot, index=index, round=snapshot.round + rounds.to(index.device)[index]))

    return watch
