"""Beyond the paper: the strongest attack that is not told the mask, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from recollect.degradation import (
    Degradation,
    Erasure,
    Start,
    all_erased,
    certain_ones_kept,
    half_kept,
    near_ones_kept,
    odd_ones_kept,
    smooth_ones_kept,
    some_pixels_kept,
)
from recollect.degradation.any_fill import of_common_colour, pixel_errors
from recollect.devices.transfers import to_device
from recollect.engine import Runtime
from recollect.errors import InputError, is_whole
from recollect.image_values import mean_square, per_image
from recollect.methods.base import Method
from recollect.methods.blind import Blind
from recollect.methods.iterate import Iterate
from recollect.methods.polish import CHECK_EVERY, polish
from recollect.per_image import PerImage
from recollect.recovery import Progress, Recovery, Snapshot, Stop, Trace

PRICE = 3  # applications of f to an image, at most, as a multiple of what blind takes for it; iterate's come on top
JUDGING = 2  # applications of f to an answer: as it is, and with the kept values of y
NEGLIGIBLE = 1e-7  # squared error that is as good as none: that of an accurate recovery
EXPLAINED = 1e-4  # squared error below which the model explains a pixel
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
SHORTEST = 20  # steps of a search that are worth it
SETTLING = 20  # applications of f that free an answer from the noise of y
RESERVED = 60  # steps that searches leave for the polish
STILLNESS = 0.3  # what a fixed point weighs beside agreement with y

Beginning = tuple[Tensor, Callable[[Tensor, Tensor], Degradation]]  # an estimate x; the mask for x and y


@dataclass(frozen=True, eq=False)
class Answer(PerImage):
    """An answer to each image, and what an attacker sees of its quality."""

    recovery: Recovery
    misfit: Tensor  # the lower, the better a fixed point of the model explains y
    explained: Tensor  # the model explains every pixel that has not the colour of erased ones

    def or_else(self, positions: Tensor, other: Answer) -> Answer:
        """The other answers to the images at `positions`, where they fit better; the work on both is counted."""
        better = other.misfit < self.misfit[positions]
        order = torch.arange(len(self), device=positions.device)
        order[positions[better]] = len(self) + torch.nonzero(better)[:, 0]
        best = Answer.join([self, other])[order]
        steps = self.recovery.steps.index_add(0, positions, other.recovery.steps)
        return replace(best, recovery=replace(best.recovery, steps=steps))


@dataclass(frozen=True)
class Refined(Method):
    """`Blind`, `Iterate` and searches from several starts; the answer that explains y best is polished.

    A search estimates image and mask together and makes no assumption on what erased pixels hold. Answers are compared
    by what an attacker sees: how far the model moves them, and how many pixels of y they explain how well. The truth is
    never read.
    """

    gamma: float = 0.5
    steps: int = 40
    limit: int = 100
    start: Start = half_kept
    restarts: tuple[Start, ...] = (odd_ones_kept, smooth_ones_kept, some_pixels_kept)  # of masks, so for erasures alone
    restart_steps: int = 80
    polish_steps: int = 200
    paste: bool = True  # right when there is no noise

    name: ClassVar[str] = "refined"
    summary: ClassVar[str] = "the strongest attack: blind, iterate and searches from other starts, the best polished"
    label: ClassVar[str] = "refined (mask unknown)"
    in_rounds: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    leads: ClassVar[int] = 3
    colour: ClassVar[str | None] = "orange"
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        Blind(self.gamma, self.steps, self.limit, self.start)  # refuses what it cannot run with
        if not isinstance(self.restarts, tuple) or not all(callable(start) for start in self.restarts):
            raise InputError(
                "restarts is a tuple of functions that make a first mask from y, such as "
                f"recollect.degradation.odd_ones_kept; got {self.restarts!r}."
            )
        for number, kind in ((self.restart_steps, "step of a restart"), (self.polish_steps, "polishing step")):
            if not is_whole(number, 1):
                raise InputError(f"At least one {kind} is needed, got {number!r}.")

    def recover(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        blind = Blind(self.gamma, self.steps, self.limit, self.start).recover(f, y, truth, trace, None)
        iterated = replace(Iterate().recover(f, y, truth, None, None), degradation=blind.degradation)
        most, everyone = PRICE * blind.steps + iterated.steps, torch.arange(len(y), device=y.device)
        best = self._judged(f, y, blind).or_else(everyone, self._judged(f, y, iterated))
        if not self.paste:
            best = self._without_noise(f, y, best, blind, most)
        if progress:
            progress(int(best.explained.sum()), len(y))
        if isinstance(blind.degradation, Erasure):
            best = self._searched(f, y, best, most, list(self._beginnings(y, blind.estimate, iterated.estimate)))
        best = self._polished(f, y, best, most)
        chosen = replace(best.recovery, rounds=blind.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), chosen.rounds, chosen.estimate, chosen.degradation))
        if progress:
            progress(len(y), len(y))
        return chosen

    def _beginnings(self, y: Tensor, blind: Tensor, iterated: Tensor) -> Iterator[Beginning]:
        """Searches begin from nothing with a mask, and from an estimate with the pixels near it."""
        for start in self.restarts:
            yield torch.zeros_like(y), lambda _x, y, start=start: start(y)  # type: ignore[misc]
        for x in (blind, y, iterated):
            yield x, near_ones_kept

    def _searched(self, f: Runtime, y: Tensor, best: Answer, most: Tensor, beginnings: list[Beginning]) -> Answer:
        """Search for images that are not explained; what is left of `most` is shared by the searches and the polish."""
        for number, (x, first_mask) in enumerate(beginnings):
            budget = most - best.recovery.steps
            share = budget // (len(beginnings) - number + 1) - JUDGING
            limits = share.clamp(min=SHORTEST, max=self.restart_steps)
            limits = _whole_checks(torch.minimum(limits, budget - JUDGING - RESERVED))
            left = torch.nonzero(~best.explained & (limits > 0))[:, 0]
            if len(left):
                theta = first_mask(x[left], y[left])
                other = polish(f, y[left], x[left], theta, gamma=self.gamma, limits=limits[left], refit=True)
                best = best.or_else(left, self._judged(f, y[left], other))
                if not self.paste:
                    best = self._without_noise(f, y, best, other, most, left)
        return best

    def _without_noise(
        self, f: Runtime, y: Tensor, best: Answer, noisy: Recovery, most: Tensor, places: Tensor | None = None
    ) -> Answer:
        """Let the model settle answers that follow a noisy y, before they are compared with fixed points."""
        positions = torch.arange(len(y), device=y.device) if places is None else places
        limits = _whole_checks((most - best.recovery.steps)[positions].sub(JUDGING).clamp(max=SETTLING))
        left = torch.nonzero(limits > 0)[:, 0]
        if not len(left):
            return best
        damaged, begun = y[positions[left]], noisy[left]
        settled = polish(f, damaged, begun.estimate, all_erased(damaged), gamma=self.gamma, limits=limits[left])
        settled = replace(settled, degradation=begun.degradation)
        return best.or_else(positions[left], self._judged(f, damaged, settled))

    def _polished(self, f: Runtime, y: Tensor, best: Answer, most: Tensor) -> Answer:
        """Carry the best answers on until they rest; a y with noise no longer counts."""
        limits = _whole_checks((most - best.recovery.steps - JUDGING).clamp(max=self.polish_steps))
        left = torch.nonzero(limits > 0)[:, 0]
        if not len(left):
            return best
        begun, is_mask = best.recovery[left], isinstance(best.recovery.degradation, Erasure)
        theta = near_ones_kept(begun.estimate, y[left]) if is_mask else begun.degradation
        if not self.paste:
            theta = all_erased(y[left])  # with all erased v <- f(v)
        assert theta is not None
        refit = is_mask and self.paste
        rested = polish(f, y[left], begun.estimate, theta, gamma=self.gamma, limits=limits[left], refit=refit)
        other = self._judged(f, y[left], replace(rested, degradation=begun.degradation))
        return _confirmed(best.or_else(left, other), left, rested)

    def _judged(self, f: Runtime, y: Tensor, recovery: Recovery) -> Answer:
        """Judge answers as they are and, where there is no noise, with the kept values of y; keep the better."""
        parts = zip(recovery.estimate.split(f.chunk), y.split(f.chunk), strict=True)
        family = recovery.degradation
        assert family is not None
        starts = range(0, len(y), f.chunk)
        judged = [
            self._judged_part(f, to_device(x, f.device), to_device(damaged, f.device), family[start : start + f.chunk])
            for start, (x, damaged) in zip(starts, parts, strict=True)
        ]
        found = Judged.join(judged).to(y.device)
        misfit = found.misfit.where(recovery.stop != Stop.DIVERGED, torch.inf)
        steps = recovery.steps + (JUDGING if self.paste else 1)
        answer = replace(recovery, estimate=found.estimate, degradation=found.degradation, steps=steps)
        return Answer(answer, misfit, found.explained)

    def _judged_part(self, f: Runtime, x: Tensor, y: Tensor, family: Degradation) -> Judged:
        output = f(x.clone())
        plain = Judged.of(x, output, y, _plausible(family.to(f.device), x, output, y))
        if not self.paste:
            return plain
        pasted = plain.degradation.paste(x, y)
        return plain.or_better(Judged.of(pasted, f(pasted.clone()), y, plain.degradation))


@dataclass(frozen=True, eq=False)
class Judged(PerImage):
    """Images beside what the model makes of them."""

    estimate: Tensor
    degradation: Degradation
    misfit: Tensor
    explained: Tensor

    @classmethod
    def of(cls, x: Tensor, output: Tensor, y: Tensor, theta: Degradation) -> Judged:
        """Judge x by how far the model moves it, and by how many pixels of y its output explains how well."""
        errors, moved = pixel_errors(output, y), mean_square(output - x)
        agreement = (errors.clamp(max=FAR**2) + NEGLIGIBLE).log().flatten(1).mean(1)
        misfit = (agreement + STILLNESS * (moved + NEGLIGIBLE).log()).nan_to_num(torch.inf)
        common = of_common_colour(y)
        every_pixel = (common | (errors < EXPLAINED)).flatten(1).all(1) & common.flatten(1).any(1)
        return cls(x, theta, misfit, every_pixel & (moved < EXPLAINED))

    def or_better(self, other: Judged) -> Judged:
        """The other images where they fit at least as well."""
        better = other.misfit <= self.misfit
        estimate = torch.where(per_image(better, self.estimate), other.estimate, self.estimate)
        explained = torch.where(better, other.explained, self.explained)
        return replace(self, estimate=estimate, misfit=torch.minimum(self.misfit, other.misfit), explained=explained)


def _whole_checks(limits: Tensor) -> Tensor:
    """Limits that images side by side reach at the same check, so that none waits for others."""
    return limits - limits % CHECK_EVERY


def _confirmed(best: Answer, positions: Tensor, rested: Recovery) -> Answer:
    """An answer has converged, however it was found, if the polish came to rest at it."""
    chosen = best.recovery
    near = mean_square(rested.estimate - chosen.estimate[positions]) < NEGLIGIBLE
    at_rest = positions[near & (rested.stop == Stop.CONVERGED)]
    stop = chosen.stop.index_fill(0, at_rest, int(Stop.CONVERGED))
    return replace(best, recovery=replace(chosen, stop=stop))


def _plausible(family: Degradation, x: Tensor, output: Tensor, y: Tensor) -> Degradation:
    """Estimate a mask from what the model returns, another degradation from the image itself."""
    if isinstance(family, Erasure):
        return certain_ones_kept(output, y)
    return family.plausible_refit(x, y)
