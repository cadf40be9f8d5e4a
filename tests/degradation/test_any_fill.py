"""The estimator that assumes nothing of what erased pixels hold."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Images, mask, observe
from recollect.degradation import (
    FILLS,
    PAPER_MASKS,
    AnyFill,
    Erasure,
    certain_ones_kept,
    fill_erased,
    near_ones_kept,
    odd_ones_kept,
    smooth_ones_kept,
)
from recollect.degradation.any_fill import MOST_CHANGES, SPREAD, between_two_kinds, of_common_colour

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
@pytest.mark.parametrize("name", list(PAPER_MASKS))
def test_from_the_right_image_it_finds_the_mask_whatever_the_fill(name: str, kind: str) -> None:
    seen = observe(IMAGES, fill_erased(mask(name, IMAGES.shape), IMAGES, kind))
    nearly = IMAGES.pixels + 1e-4 * torch.randn(IMAGES.pixels.shape, generator=torch.Generator().manual_seed(1))
    found = odd_ones_kept(seen.y).refit(nearly, seen.y).keep
    assert (found == seen.truth.expand(seen.y).keep).float().mean() > 0.98  # type: ignore[attr-defined]
    assert (found == found[:, :1]).all()  # the same in all channels


@pytest.mark.parametrize("kind", ["zero", "constant"])
def test_a_common_colour_gives_the_mask_away(kind: str) -> None:
    seen = observe(IMAGES, fill_erased(mask("dust", IMAGES.shape), IMAGES, kind))
    assert torch.equal(odd_ones_kept(seen.y).keep, seen.truth.expand(seen.y).keep)  # type: ignore[attr-defined]


def test_several_common_colours_give_the_mask_away_too() -> None:
    """Salt and pepper: erased pixels are black or white at random, as salt noise makes them."""
    keep = mask("dust", IMAGES.shape).expand(IMAGES.pixels).keep
    salt = (torch.rand(16, 16, generator=torch.Generator().manual_seed(2)) > 0.7).float().expand_as(IMAGES.pixels)
    assert torch.equal(odd_ones_kept(torch.where(keep, IMAGES.pixels, salt)).keep, keep)


def test_without_one_half_of_the_pixels_are_kept() -> None:
    start = odd_ones_kept(IMAGES.pixels)
    assert 0.4 < start.keep.float().mean() < 0.6
    assert (start.keep == start.keep[:, :1]).all()


def test_noise_in_a_smooth_picture_is_found_before_any_model_is_asked() -> None:
    ramp = torch.linspace(0.2, 0.8, 16).expand(6, 3, 16, 16)
    seen = observe(Images(ramp), fill_erased(mask("half", IMAGES.shape), Images(ramp), "noise"))
    found, truth = smooth_ones_kept(seen.y).keep, seen.truth.expand(seen.y).keep  # type: ignore[attr-defined]
    away_from_the_edge = [*range(6), *range(8, 16)]  # roughness is measured over two rows
    assert torch.equal(found[..., away_from_the_edge, :], truth[..., away_from_the_edge, :])


def test_refits_come_to_an_end_whatever_they_are_given() -> None:
    """Estimates that contradict each other for ever: no pixel changes more often than allowed, then none does."""
    draw = torch.Generator().manual_seed(3)
    theta, y = odd_ones_kept(IMAGES.pixels), IMAGES.pixels
    changes = torch.zeros_like(theta.keep[:, :1], dtype=torch.int64)
    for _ in range(200):
        again = theta.refit(torch.rand(y.shape, generator=draw), y)
        changes += again.keep[:, :1] != theta.keep[:, :1]
        theta = again
    assert changes.max() <= MOST_CHANGES
    assert torch.equal(theta.refit(torch.rand(y.shape, generator=draw), y).keep, theta.keep)
    assert isinstance(theta, AnyFill)


def test_a_pixel_that_only_seems_kept_is_not_certain() -> None:
    """Errors of 1e-4 on kept pixels and of 3e-3 on a few erased ones: near all the same, beside others of 0.3."""
    y = torch.full((1, 1, 8, 8), 0.5)
    x = y + 1e-4
    x[..., 4:, :] = 0.2
    x[..., 4, :3] = 0.5 + 3e-3
    assert near_ones_kept(x, y).keep[..., 4, :3].all()
    certain = certain_ones_kept(x, y)
    assert type(certain) is Erasure
    assert certain.keep.sum() == 32
    assert (certain.paste(x, y) - x).square().max() <= SPREAD * 1e-8 * 1.01


def test_where_one_colour_explains_the_rest_all_other_pixels_are_kept() -> None:
    """Errors of kept pixels differ by orders of magnitude, which alone would part them into two kinds."""
    seen = observe(IMAGES, mask("half", IMAGES.shape))
    truth = seen.truth.expand(seen.y).keep  # type: ignore[attr-defined]
    errors = torch.logspace(-7, -2.1, 16).expand_as(seen.y)
    for kept in (near_ones_kept, certain_ones_kept):
        assert torch.equal(kept(IMAGES.pixels + errors, seen.y).keep, truth)
    far = IMAGES.pixels + errors
    far[..., 0, 0] += 0.5  # one pixel is not explained, so the colour proves nothing
    assert not torch.equal(certain_ones_kept(far, seen.y).keep, truth)


def test_a_mask_that_one_colour_gives_away_is_not_refitted() -> None:
    seen = observe(IMAGES, mask("half", IMAGES.shape))
    start = odd_ones_kept(seen.y)
    assert torch.equal(start.refit(torch.rand(seen.y.shape), seen.y).keep, start.keep)


def test_an_image_of_one_pixel_has_one_kind() -> None:
    one = torch.rand(2, 3, 1, 1)
    for theta in (odd_ones_kept(one), smooth_ones_kept(one), near_ones_kept(one, one), certain_ones_kept(one, one)):
        assert theta.keep.shape == one.shape


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("name", ["block", "dust", "random-each:40%"])
@pytest.mark.parametrize("shape", [(2, 60), (80,)])
def test_it_finds_masks_of_signals_and_rows_value_by_value(name: str, kind: str, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    items = Images(torch.rand(6, *shape, generator=generator))
    seen = observe(items, fill_erased(mask(name, items.shape, count=6), items, kind))
    nearly = items.pixels + 1e-4 * torch.randn(items.pixels.shape, generator=generator)
    for start in (odd_ones_kept, smooth_ones_kept):
        found = start(seen.y).refit(nearly, seen.y).keep
        assert (found == seen.truth.expand(seen.y).keep).float().mean() > 0.98  # type: ignore[attr-defined]


def test_values_that_occur_once_are_not_common() -> None:
    row = torch.rand(4, 10, generator=torch.Generator().manual_seed(0))
    assert not of_common_colour(row).any()
    row[1, [2, 5]] = 0.25
    assert of_common_colour(row).nonzero().tolist() == [[1, 2], [1, 5]]
