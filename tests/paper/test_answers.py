from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from recollect import Blind, Images, Iterate, KnownMask, Recovery, Refined, Stop, mask, observe
from recollect.degradation import Observation, all_erased
from recollect.paper.answers import CycleErrors, both_answers, unpasting
from recollect.recovery import Snapshot
from recollect.scoring import mse
from tests.methods.test_blind import flip_flop
from tests.planted import Memorizer

IMAGES = Images(torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
F = Memorizer(IMAGES.pixels)


def seen(noise: float = 0.0) -> Observation:
    return observe(IMAGES, mask("half", IMAGES.shape), noise_std=noise)


@pytest.mark.parametrize("steps", [3, 40])
def test_the_mask_known_gives_both_answers_of_one_run(steps: int) -> None:
    known, damaged = KnownMask(steps=steps), seen()
    recovery = unpasting(known)(F, damaged.y, damaged.truth)
    answers = both_answers(known, recovery, damaged)
    assert torch.equal(answers.own, known(F, damaged.y, damaged.truth).estimate)
    plain = replace(known, paste=False)(F, damaged.y, damaged.truth).estimate
    assert answers.other_errors(IMAGES.pixels) == {"mse_unpasted": mse(plain, IMAGES.pixels).tolist()}
    assert both_answers(replace(known, paste=False), recovery, damaged).own is recovery.estimate


def test_blind_is_pasted_by_its_own_mask() -> None:
    damaged = seen()
    recovery = Blind(steps=5)(F, damaged.y)
    answers = both_answers(Blind(steps=5), recovery, damaged)
    assert answers.own is recovery.estimate
    keep = recovery.degradation.keep  # type: ignore[union-attr]
    pasted = torch.where(keep, damaged.y, recovery.estimate)
    assert answers.other_errors(IMAGES.pixels) == {"mse_pasted": mse(pasted, IMAGES.pixels).tolist()}


@pytest.mark.parametrize(
    ("method", "noise"), [(Iterate(), 0.0), (Refined(), 0.0), (Blind(), 0.1), (KnownMask(paste=False), 0.1)]
)
def test_where_pasting_is_no_question_there_is_one_answer(method: Any, noise: float) -> None:
    damaged = seen(noise)
    recovery = method(F, damaged.y, damaged.truth) if method.knows_truth else method(F, damaged.y)
    assert unpasting(method) == method
    answers = both_answers(method, recovery, damaged)
    assert answers.own is recovery.estimate
    assert answers.other_errors(IMAGES.pixels) == {}


def test_the_errors_of_a_cycle_are_those_of_all_its_members() -> None:
    """Of three images under a network that makes masks alternate, the first cycles, and the last is another set's."""
    y = torch.stack([torch.ones(1, 2, 2), torch.full((1, 2, 2), -1.0), torch.ones(1, 2, 2)])
    shown: list[Snapshot] = []
    originals = torch.tensor([0.5, 0.5, 0.25]).view(3, 1, 1, 1).expand(3, 1, 2, 2)
    errors = CycleErrors(originals)

    def trace(snapshot: Snapshot) -> None:
        shown.append(snapshot)
        errors(snapshot)

    recovery = Blind(gamma=2.0, steps=2, limit=50, start=all_erased)(partial(flip_flop), y, trace=trace)
    assert recovery.stops == [Stop.CYCLE, Stop.CONVERGED, Stop.CYCLE]
    members = [snapshot.estimate[0] for snapshot in shown[:2]]
    low, high = sorted(float((x.double() - 0.5).square().mean()) for x in members)
    assert errors.rows(recovery[:2]) == [[0, 2, pytest.approx(low), pytest.approx(high)]]
    ((position, length, lowest, highest),) = errors.rows(recovery[2:], first=2)
    assert (position, length) == (0, 2)
    assert low < high
    assert lowest < highest
    assert lowest != pytest.approx(low)
    assert isinstance(recovery, Recovery)
