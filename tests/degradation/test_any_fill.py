"""The estimator that assumes nothing of what erased pixels hold."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Images, mask, observe
from recollect.degradation import FILLS, SIX, AnyFill, fill_erased, odd_ones_kept, patches_kept
from recollect.degradation.any_fill import between_two_kinds

IMAGES = Images(torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12, unique=True))
def test_the_threshold_leaves_the_least_spread_within_both_kinds(values: list[float]) -> None:
    """Otsu's two forms are the same: furthest means, least sum of squares within."""
    row = torch.tensor([values], dtype=torch.float64)
    threshold = between_two_kinds(row)

    def within(cut: float) -> float:
        low, high = row[row <= cut], row[row > cut]
        return float(sum((part - part.mean()).square().sum() for part in (low, high)))

    cuts = sorted(values)[:-1]
    assert within(float(threshold)) <= min(within(cut) for cut in cuts) + 1e-9


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("name", list(SIX))
def test_from_the_right_image_it_finds_the_mask_whatever_the_fill(name: str, kind: str) -> None:
    seen = observe(IMAGES, fill_erased(mask(name, IMAGES.shape), IMAGES, kind))
    nearly = IMAGES.pixels + 1e-4 * torch.randn(IMAGES.pixels.shape, generator=torch.Generator().manual_seed(1))
    found = odd_ones_kept(seen.y).refit(nearly, seen.y).keep
    assert (found == seen.truth.expand(seen.y).keep).float().mean() > 0.98  # type: ignore[attr-defined]
    assert (found == found[:, :1]).all()  # the same in all channels


@pytest.mark.parametrize("kind", ["zero", "constant"])
def test_a_common_colour_gives_the_mask_away(kind: str) -> None:
    seen = observe(IMAGES, fill_erased(mask("dust", IMAGES.shape), IMAGES, kind))
    for start in (odd_ones_kept, patches_kept):
        assert torch.equal(start(seen.y).keep, seen.truth.expand(seen.y).keep)  # type: ignore[attr-defined]
        assert not start(seen.y).patches.any()


def test_without_one_half_of_the_pixels_are_kept() -> None:
    start = odd_ones_kept(IMAGES.pixels)
    assert 0.4 < start.keep.float().mean() < 0.6
    assert (start.keep == start.keep[:, :1]).all()
    assert patches_kept(IMAGES.pixels).patches.all()


def test_patches_find_a_hole_that_single_pixels_hide() -> None:
    """Errors that vary from pixel to pixel more than between hole and rest."""
    draw = torch.Generator().manual_seed(2)
    keep = mask("half", IMAGES.shape).expand(IMAGES.pixels).keep
    size = torch.rand(IMAGES.pixels[:, :1].shape, generator=draw) ** 3 * torch.where(keep[:, :1], 0.1, 0.3)
    y = IMAGES.pixels + size
    none = torch.zeros(6, dtype=torch.bool)
    pixels = AnyFill(keep, none).refit(IMAGES.pixels, y).keep
    patches = AnyFill(keep, ~none).refit(IMAGES.pixels, y).keep
    assert (patches == keep).float().mean() > (pixels == keep).float().mean() + 0.1
    assert torch.equal(AnyFill(keep, ~none).plausible_refit(IMAGES.pixels, y).keep, pixels)
