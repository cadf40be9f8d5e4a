import pytest
import torch

from recollect import Images, InputError, KnownMask, Stop, mask, observe
from recollect.methods import ZeroRule
from tests.erased import keep_of
from tests.planted import Memorizer

pytestmark = pytest.mark.usefixtures("both_paths")


@pytest.fixture
def images(rng: torch.Generator) -> Images:
    return Images(torch.rand(4, 3, 8, 8, generator=rng) * 0.9 + 0.1)


def test_it_is_the_known_mask_where_zeros_give_the_mask_away(images: Images) -> None:
    seen = observe(images, mask("scatter", images.shape))
    f = Memorizer(images.pixels)
    rule, known = ZeroRule(gamma=0.3)(f, seen.y), KnownMask(gamma=0.3)(f, seen.y, seen.truth)
    assert torch.equal(rule.estimate, known.estimate)
    assert torch.equal(keep_of(rule.degradation), keep_of(seen.truth.expand(seen.y)))
    assert rule.stops == [Stop.DONE] * 4


def test_a_black_pixel_is_taken_for_erased_and_a_zero_in_one_channel_is_not(images: Images) -> None:
    pixels = images.pixels.clone()
    pixels[0, :, 2, 3] = 0
    pixels[1, 0, 2, 3] = 0
    seen = observe(Images(pixels), mask(torch.ones(8, 8, dtype=torch.bool), images.shape))
    keep = keep_of(ZeroRule()(Memorizer(pixels), seen.y).degradation)
    assert not keep[0, :, 2, 3].any()
    assert keep[0].sum() == 3 * 64 - 3
    assert keep[1].all()


def test_noise_hides_the_mask_from_it(images: Images) -> None:
    seen = observe(images, mask("half", images.shape), noise_std=0.01)
    found = ZeroRule(paste=False)(Memorizer(images.pixels), seen.y)
    assert keep_of(found.degradation).all()
    assert not torch.equal(found.estimate, seen.y)
    assert torch.equal(ZeroRule(paste=True)(Memorizer(images.pixels), seen.y).estimate, seen.y)  # all of y put back


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="gamma must be positive"):
        ZeroRule(gamma=0)
    with pytest.raises(InputError, match="tensor N x C x H x W"):
        ZeroRule()(Memorizer(torch.rand(1, 3, 4, 4)), torch.rand(3, 4, 4))
