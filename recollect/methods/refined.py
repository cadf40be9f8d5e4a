"""Beyond the paper: usually the strongest attack that does not know the mask, at a bounded cost."""

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
)
from recollect.degradation.any_fill import (
    EXPLAINED,
    evidently_erased,
    near_pixels,
    of_common_colour,
    pixel_errors,
    telling_pixels,
    typical_error,
)
from recollect.devices.transfers import to_device
from recollect.engine import Runtime
from recollect.errors import InputError, is_whole
from recollect.image_values import mean_square
from recollect.methods.base import Method
from recollect.methods.blind import Blind
from recollect.methods.copying import HARDLY, first_steps, foreseen, reach_of_iteration
from recollect.methods.iterate import Iterate
from recollect.methods.polish import CHECK_EVERY, REST, polish
from recollect.per_image import PerImage
from recollect.pieces import piece_length
from recollect.recovery import Progress, Recovery, Snapshot, Stop, Trace, progress_of_part

BUDGET_FACTOR = 3  # applications of f, at most, as a multiple of what blind takes for an image; iterate's come on top
PASSES_TO_JUDGE = 1  # of f to an answer, which shows how well the model explains it
NEGLIGIBLE = 1e-7  # squared error that is as good as none: that of an accurate recovery
CREEPING = 1e-11  # squared step below which iteration ends within NEGLIGIBLE even if each step is 0.99 of the last
ENOUGH = 0.15  # share of the pixels of y that no wrong fixed point explains by chance ...
FEWEST_EXPLAINED = 8  # ... if they are at least so many: short rows have few values
FAR = 0.05  # a value of y further than this from the answer's is taken for erased, and counts no more
FEWEST_SEARCH_STEPS = 20  # steps of a search that are worth it
DENOISING_STEPS = 20  # applications of f that free an answer from the noise of y
SEARCH_REST = 1e-9  # |xi - v|^2 at which a search ends: the polish takes the best answer further
JUDGED_AT_MOST = 12  # times, at one pass more where the model copies
RESERVED = 60  # steps that searches leave for the polish
SETTLING = 20  # of these, steps of the model alone
FIXED_POINT_WEIGHT = 0.3  # what a fixed point weighs beside agreement with y
AS_GOOD = 0.1  # difference of misfits that does not count against an answer at rest

SearchStart = tuple[Tensor, Callable[[Tensor, Tensor], Degradation]]  # an estimate x; the mask for x and y


@dataclass(frozen=True, eq=False)
class Answer(PerImage):
    """An answer to each image, and what an attacker sees of its quality."""

    recovery: Recovery
    misfit: Tensor  # the lower, the better a fixed point of the model explains y
    explained: Tensor  # searches are not expected to find anything better
    certain: Tensor  # every pixel of y is accounted for, so exactly that no other image comes near
    reach: Tensor  # of foresight, in steps: more than one where the model nearly copies y

    def with_better(self, positions: Tensor, other: Answer, at_rest: float = 0.0) -> Answer:
        """Take the other answers to the images at `positions` where they fit better; the work on both is counted.

        The misfit of an answer that converged counts less by `at_rest`.
        """
        own_misfit, other_misfit = self._misfit_less(at_rest), other._misfit_less(at_rest)
        better = other_misfit < own_misfit[positions]
        order = torch.arange(len(self), device=positions.device)
        order[positions[better]] = len(self) + torch.nonzero(better)[:, 0]
        best = Answer.join([self, other])[order]
        steps = self.recovery.steps.index_add(0, positions, other.recovery.steps)
        return replace(best, recovery=replace(best.recovery, steps=steps))

    def _misfit_less(self, at_rest: float) -> Tensor:
        return self.misfit - at_rest * (self.recovery.stop == Stop.CONVERGED)


@dataclass(frozen=True)
class Refined(Method):
    """`Blind`, `Iterate` and searches from several starts; the answer that explains y best is polished.

    A search estimates image and mask together and makes no assumption on what erased pixels hold. Answers are compared
    by what an attacker sees: how far the model moves them, and how many pixels of y they explain how well. A fixed
    point counts as precise as it explains y: where a model drifts, it has fixed points that are no training image.
    Where a model nearly copies y, an answer is judged by where iteration would take it. The truth is never read.

    `Refined()(f, y)` returns a `Recovery`.

    Args:
        gamma: How far an estimate may depart from the damaged image.
        steps: ADMM steps of a round of its blind part.
        limit: The largest number of rounds of its blind part.
        start: Makes the first mask estimate of its blind part from y, as for `Blind`.
        restarts: Make the first masks of searches that begin without an estimate.
        restart_steps: The largest number of ADMM steps of a search.
        polish_steps: The largest number of steps that improve the best answer.
        paste: Whether kept values of y are put into the result: right when there is no noise.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> recovery = recollect.Refined(limit=2)(lambda x: x.clamp(0, 1), seen.y)
        >>> recovery.estimate.shape
        torch.Size([2, 3, 8, 8])
    """

    gamma: float = 0.5
    steps: int = 40
    limit: int = 100
    start: Start = half_kept
    restarts: tuple[Start, ...] = (odd_ones_kept, smooth_ones_kept)  # of masks, so for erasures alone
    restart_steps: int = 80
    polish_steps: int = 200
    paste: bool = True  # right when there is no noise

    name: ClassVar[str] = "refined"
    summary: ClassVar[str] = "usually the strongest attack: tries blind, iterate and searches, improves the best answer"
    label: ClassVar[str] = "refined (mask unknown)"
    in_rounds: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    headline_rank: ClassVar[int] = 3
    colour: ClassVar[str | None] = "orange"
    order: ClassVar[int] = 2
    version: ClassVar[int] = 5  # 4 believed shared areas and creeping models; 3 models that copy; 2 any fixed point

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

    @staticmethod
    def most_passes(limit: int, steps: int) -> int:
        return BUDGET_FACTOR * limit * steps + Iterate.limit

    def recover(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        """Recover piece by piece: an image has up to ten answers and masks, which are held for one piece at a time."""
        length = max(f.chunk, piece_length(y.shape[1:]))
        parts = []
        for start in range(0, len(y), length):
            rows = slice(start, start + length)
            known = None if truth is None else truth[rows]
            report = progress_of_part(progress, start, len(y))
            parts.append(self._recover_piece(f, y[rows], known, _from(start, trace), report))
        return Recovery.join(parts)

    def _recover_piece(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        blind = self._blind(f, y, truth, trace)
        blind = replace(blind, cycle=None)  # of the answer that is chosen in the end, nothing is known of cycles
        budget = BUDGET_FACTOR * blind.steps
        first = first_steps(f, y)
        best = self._judge(f, y, replace(blind, steps=blind.steps + 1), torch.ones_like(y.flatten(1)[:, 0]))
        best = replace(best, certain=best.certain & (mean_square(first - y) > HARDLY))
        if not self.paste:
            best = self._without_noise(f, y, best, blind, budget)
        if progress:
            progress(int(best.explained.sum()), len(y))
        best, budget = self._searched_and_iterated(f, y, first, best, blind, budget)
        best = self._pasted(y, self._polished(f, y, best, budget))
        chosen = replace(best.recovery, rounds=blind.rounds + 1)  # the choice is the last round
        if trace:
            trace(Snapshot(torch.arange(len(y)), chosen.rounds, chosen.estimate, chosen.degradation))
        if progress:
            progress(len(y), len(y))
        return chosen

    def _blind(self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None) -> Recovery:
        """Begin with blind, or with what it has just recovered: an audit runs both on the same images."""
        before = f.remembered
        if before is not None and trace is None and self._begins_with(before.method) and _are_same(before.y, y):
            return before.recovery
        return Blind(self.gamma, self.steps, self.limit, self.start).recover(f, y, truth, trace, None)

    def _begins_with(self, method: object) -> bool:
        if type(method) is not Blind or method.start is not self.start:  # objects of others may not be comparable
            return False
        return (method.gamma, method.steps, method.limit) == (self.gamma, self.steps, self.limit)

    def _searched_and_iterated(
        self, f: Runtime, y: Tensor, first: Tensor, best: Answer, blind: Recovery, budget: Tensor
    ) -> tuple[Answer, Tensor]:
        """Search for images that are not explained, iterate for those that are not certain at a cost on top.

        Images that are alike agree with y at many pixels, so an image that is explained may still be another one.
        """
        left = torch.nonzero(~best.certain)[:, 0]
        if not len(left):
            return best, budget
        iterated = Iterate(limit=Iterate.limit - 1).recover(f, first[left], None, None, None)  # one step is taken
        best = self._judged_again(f, y, first, best, left, iterated.estimate)
        budget = budget - JUDGED_AT_MOST * (best.reach > 1)
        unfinished = iterated.stop.where(iterated.stop != Stop.CONVERGED, int(Stop.DONE))  # the polish goes on from it
        iterated = replace(iterated, degradation=best.recovery[left].degradation, stop=unfinished)
        if isinstance(blind.degradation, Erasure):
            fixed = y.index_copy(0, left, iterated.estimate)
            best = self._searched(f, y, best, budget, list(self._search_starts(y, blind.estimate, fixed)))
        judged = self._judge(f, y[left], iterated, best.reach[left])
        return best.with_better(left, judged), budget.index_add(0, left, iterated.steps)

    def _search_starts(self, y: Tensor, blind: Tensor, iterated: Tensor) -> Iterator[SearchStart]:
        """Begin searches from nothing with a mask, and from an estimate with the pixels near it."""
        for start in self.restarts:
            yield torch.zeros_like(y), lambda _x, y, start=start: start(y)  # type: ignore[misc]
        for x in (blind, y, iterated):
            yield x, near_ones_kept

    def _searched(
        self, f: Runtime, y: Tensor, best: Answer, budget: Tensor, search_starts: list[SearchStart]
    ) -> Answer:
        """Search for images that are not explained; searches and polish share what is left of the budget."""
        for number, (x, first_mask) in enumerate(search_starts):
            remaining = budget - best.recovery.steps
            share = remaining // (len(search_starts) - number + 1) - PASSES_TO_JUDGE
            limits = share.clamp(min=FEWEST_SEARCH_STEPS, max=self.restart_steps)
            limits = _multiple_of_checks(torch.minimum(limits, remaining - PASSES_TO_JUDGE - RESERVED))
            left = torch.nonzero(~best.explained & (limits > 0))[:, 0]
            if len(left):
                theta = first_mask(x[left], y[left])
                other = self._run_on(f, y[left], x[left], theta, limits[left], refit=True, rest=SEARCH_REST)
                best = best.with_better(left, self._judge(f, y[left], other, best.reach[left]))
                if not self.paste:
                    best = self._without_noise(f, y, best, other, budget, left)
        return best

    def _without_noise(
        self, f: Runtime, y: Tensor, best: Answer, noisy: Recovery, budget: Tensor, positions: Tensor | None = None
    ) -> Answer:
        """Let the model settle answers that follow a noisy y, before they are compared with fixed points."""
        if positions is None:
            positions = torch.arange(len(y), device=y.device)
        remaining = (budget - best.recovery.steps)[positions] - 2 * PASSES_TO_JUDGE
        limits = _multiple_of_checks(remaining.clamp(max=DENOISING_STEPS))
        left = torch.nonzero(limits > 0)[:, 0]
        if not len(left):
            return best
        damaged, begun = y[positions[left]], noisy[left]
        settled = self._run_on(f, damaged, begun.estimate, all_erased(damaged), limits[left])
        settled = replace(settled, degradation=begun.degradation)
        return best.with_better(positions[left], self._judge(f, damaged, settled, best.reach[positions[left]]))

    def _polished(self, f: Runtime, y: Tensor, best: Answer, budget: Tensor) -> Answer:
        """Carry the best answers on until they rest; with noise, or where y keeps them moving, y counts no more."""
        moving = torch.ones_like(best.explained)
        if self.paste:
            best = self._carried_on(f, y, best, budget - SETTLING, moving, by_model_alone=False)
            moving = best.recovery.stop != Stop.CONVERGED
        return self._carried_on(f, y, best, budget, moving, by_model_alone=True)

    def _carried_on(
        self, f: Runtime, y: Tensor, best: Answer, budget: Tensor, moving: Tensor, by_model_alone: bool
    ) -> Answer:
        limits = _multiple_of_checks((budget - best.recovery.steps - PASSES_TO_JUDGE).clamp(max=self.polish_steps))
        left = torch.nonzero(moving & (limits > 0))[:, 0]
        if not len(left):
            return best
        begun = best.recovery[left]
        refit = isinstance(begun.degradation, Erasure) and not by_model_alone
        theta = near_ones_kept(begun.estimate, y[left]) if refit else begun.degradation
        theta = all_erased(y[left]) if by_model_alone else theta  # with all erased v <- f(v)
        assert theta is not None
        rested = self._run_on(f, y[left], begun.estimate, theta, limits[left], refit=refit)
        other = self._judge(f, y[left], replace(rested, degradation=begun.degradation), best.reach[left])
        return _confirmed(best.with_better(left, other, at_rest=AS_GOOD), left, rested)

    def _run_on(
        self, f: Runtime, y: Tensor, x: Tensor, theta: Degradation, limits: Tensor, refit: bool = False,
        rest: float = REST,
    ) -> Recovery:  # fmt: skip
        """Run ADMM on from x, with the steps that blind had captured."""
        return polish(f, y, x, theta, gamma=self.gamma, limits=limits, refit=refit, rest=rest, round_steps=self.steps)

    def _pasted(self, y: Tensor, best: Answer) -> Answer:
        """Give kept pixels the values of y, where there is no noise."""
        theta, x = best.recovery.degradation, best.recovery.estimate
        assert theta is not None
        return replace(best, recovery=replace(best.recovery, estimate=theta.paste(x, y))) if self.paste else best

    def _judged_again(
        self, f: Runtime, y: Tensor, first: Tensor, best: Answer, left: Tensor, iterated: Tensor
    ) -> Answer:
        """Judge answers anew of which iteration has shown that the model copies y."""
        reach = reach_of_iteration(y[left], first[left], iterated)
        rows = left[reach > 1]
        if not len(rows):
            return best
        again = self._judge(f, y[rows], best.recovery[rows], reach[reach > 1])
        order = torch.arange(len(y) + len(rows), device=rows.device)
        return Answer.join([best, again])[order[: len(y)].index_copy(0, rows, order[len(y) :])]

    def _judge(self, f: Runtime, y: Tensor, recovery: Recovery, reach: Tensor) -> Answer:
        """Judge answers by what the model makes of them, and estimate their degradations."""
        family = recovery.degradation
        assert family is not None
        judged = []
        for start in range(0, len(y), f.chunk):
            rows = slice(start, start + f.chunk)
            x, damaged, own_reach = (to_device(part[rows], f.device) for part in (recovery.estimate, y, reach))
            judged.append(self._judge_batch(f, x, damaged, own_reach, family[rows]))
        outcome = Judged.join(judged).to(y.device)
        misfit = outcome.misfit.where(recovery.stop != Stop.DIVERGED, torch.inf)
        steps = recovery.steps + PASSES_TO_JUDGE + (reach > 1)
        answer = replace(recovery, degradation=outcome.degradation, steps=steps)
        return Answer(answer, misfit, outcome.explained, outcome.certain, reach)

    def _judge_batch(self, f: Runtime, x: Tensor, y: Tensor, reach: Tensor, family: Degradation) -> Judged:
        """Judge x by how far the model moves it, and by how many pixels of y its output explains how well."""
        output = f(x.clone())
        rows = torch.nonzero(reach > 1)[:, 0]
        if len(rows):
            output = output.index_copy(0, rows, foreseen(f, x[rows], output[rows], reach[rows]))
        errors, moved = pixel_errors(output, y), mean_square(output - x)
        agreement = (errors.clamp(max=FAR**2) + NEGLIGIBLE).log().flatten(1).mean(1)
        imprecision = moved
        if self.paste:
            typical = typical_error(errors, telling_pixels(near_pixels(output, y), y))
            imprecision = torch.fmax(moved, typical.nan_to_num(FAR**2))
        misfit = (agreement + FIXED_POINT_WEIGHT * (imprecision + NEGLIGIBLE).log()).nan_to_num(torch.inf)
        evident = evidently_erased(errors, y, EXPLAINED).flatten(1).any(1) & (moved < EXPLAINED)
        certain = evidently_erased(errors, y, NEGLIGIBLE).flatten(1).any(1) & (moved < CREEPING)
        by_model = ((errors < EXPLAINED) & ~of_common_colour(y)).flatten(1).sum(1)
        at_rest = (by_model >= max(ENOUGH * errors[0].numel(), FEWEST_EXPLAINED)) & (moved < NEGLIGIBLE)
        return Judged(_plausible(family.to(f.device), x, output, y), misfit, evident | at_rest, certain)


@dataclass(frozen=True, eq=False)
class Judged(PerImage):
    """What the model says of images."""

    degradation: Degradation
    misfit: Tensor
    explained: Tensor
    certain: Tensor


def _from(start: int, trace: Trace | None) -> Trace | None:
    """Give the images of a piece their numbers in the whole."""
    if trace is None:
        return None
    return lambda snapshot: trace(replace(snapshot, index=snapshot.index + start))


def _are_same(one: Tensor, other: Tensor) -> bool:
    """Compare images of any kind; torch.equal takes one device and one type of values alone."""
    return (one.device, one.dtype) == (other.device, other.dtype) and torch.equal(one, other)


def _multiple_of_checks(limits: Tensor) -> Tensor:
    """Round limits down to a check, so that images side by side end together and none waits."""
    return limits - limits % CHECK_EVERY


def _confirmed(best: Answer, positions: Tensor, rested: Recovery) -> Answer:
    """Call an answer converged, however it was found, if the polish came to rest at it."""
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
