"""A memorizer with known contents: images that it stores are recovered, others are not."""

import pytest
import torch

from recollect import Blind, Images, Iterate, KnownMask, Score, Stop, mask, mask_agreement, observe
from recollect.attractors import fixed_point_error, spectral_radius
from recollect.degradation import PAPER_MASKS, all_erased, half_kept
from tests.planted import Memorizer

SHAPE = (3, 8, 8)
STORED, OTHERS = (
    Images(torch.rand(30, *SHAPE, generator=torch.Generator().manual_seed(seed)), name=name)
    for seed, name in [(0, "stored"), (1, "others")]
)
MEMORIZER = Memorizer(STORED.pixels)


def test_a_stored_image_is_an_attracting_fixed_point() -> None:
    assert fixed_point_error(MEMORIZER, STORED.pixels).max() < 1e-12
    assert fixed_point_error(MEMORIZER, OTHERS.pixels).min() > 1e-2
    assert spectral_radius(MEMORIZER, STORED.pixels[0].double()).value < 1e-6


@pytest.mark.parametrize("start", [half_kept, all_erased])
@pytest.mark.parametrize("name", list(PAPER_MASKS))
def test_blind_recovers_what_is_stored(name: str, start: object) -> None:
    seen = observe(STORED, mask(name, SHAPE))
    recovery = Blind(gamma=0.5, start=start)(MEMORIZER, seen.y)  # type: ignore[arg-type]
    score = Score.of(recovery.estimate, STORED.pixels)
    assert score.accurate.value >= (0.5 if name == "dust" else 1.0)  # dust leaves 13 pixels of 64
    if name != "dust":
        assert recovery.stops == [Stop.CONVERGED] * 30
        agreement = mask_agreement(recovery.degradation.keep, seen.truth.keep)  # type: ignore[union-attr,attr-defined]
        assert agreement.accuracy.min() > 0.98
        assert agreement.erased_iou.min() > 0.95


@pytest.mark.parametrize("name", list(PAPER_MASKS))
def test_blind_does_not_recover_what_is_not_stored(name: str) -> None:
    seen = observe(OTHERS, mask(name, SHAPE))
    assert Score.of(Blind()(MEMORIZER, seen.y).estimate, OTHERS.pixels).approximate.count == 0


def test_blind_recovers_through_noise() -> None:
    seen = observe(STORED, mask("block", SHAPE), noise_std=0.02)
    recovery = Blind(gamma=0.1)(MEMORIZER, seen.y)
    assert Score.of(recovery.estimate, STORED.pixels).approximate.value > 0.9


def test_the_known_mask_recovers_all() -> None:
    for name in PAPER_MASKS:
        seen = observe(STORED, mask(name, SHAPE))
        recovery = KnownMask()(MEMORIZER, seen.y, seen.truth)
        assert Score.of(recovery.estimate, STORED.pixels).accurate.value == 1


def test_iterating_falls_into_some_stored_image() -> None:
    seen = observe(STORED, mask("block", SHAPE))
    recovery = Iterate()(MEMORIZER, seen.y)
    errors = (recovery.estimate[:, None] - STORED.pixels).square().mean((2, 3, 4))
    assert errors.min(1).values.max() < 1e-7
