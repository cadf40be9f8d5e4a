import math

import pytest
import torch

from recollect import Erasure, Images, InputError, mask, observe

SHAPE = (3, 16, 16)


def images(count: int = 40, seed: int = 0) -> Images:
    return Images(torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(seed)))


def test_without_noise_y_is_the_erased_image() -> None:
    seen = observe(images(), mask("block", SHAPE))
    assert torch.equal(seen.y, images().pixels * mask("block", SHAPE).keep)
    assert torch.equal(seen.truth.keep, mask("block", SHAPE).keep)  # type: ignore[attr-defined]
    assert seen.noise_std == 0


def test_one_mask_an_image() -> None:
    truth = mask("random-each:0.5", SHAPE, count=40)
    assert torch.equal(observe(images(), truth).y, images().pixels * truth.keep)


def test_eight_bit_images_are_seen_as_floats() -> None:
    values = torch.randint(0, 256, (2, *SHAPE), dtype=torch.uint8)
    assert torch.equal(observe(Images.from_uint8(values), mask("half", SHAPE)).y[:, :, :8], values[:, :, :8] / 255)


def test_noise_falls_on_every_value_with_the_given_deviation() -> None:
    truth = mask("half", SHAPE)
    noise = observe(images(), truth, noise_std=0.02).y - observe(images(), truth).y
    assert abs(noise.mean()) < 0.0005
    for part in (noise[:, :, :8], noise[:, :, 8:]):  # kept and erased
        assert abs(part.std() - 0.02) < 0.0005
    a, b = noise[0].flatten(), noise[1].flatten()
    assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1]) < 0.15


def test_an_images_noise_is_its_own() -> None:
    truth = mask("block", SHAPE)
    together = observe(images(), truth, noise_std=0.1).y
    assert torch.equal(observe(images()[::-1], truth, noise_std=0.1).y.flip(0), together)
    assert torch.equal(observe(images()[7], truth, noise_std=0.1).y, together[7:8])
    assert not torch.equal(observe(images(), truth, noise_std=0.1, seed=43).y, together)


def test_the_noise_does_not_depend_on_the_mask() -> None:
    whole = Erasure(torch.ones(1, 1, 16, 16, dtype=torch.bool))
    noise = [observe(images(), t, noise_std=0.1).y - observe(images(), t).y for t in (whole, mask("dust", SHAPE))]
    assert torch.allclose(noise[0], noise[1], atol=1e-6)


def test_plain_pixels_are_checked_at_the_door() -> None:
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]"):
        observe(images().pixels * 255, mask("block", SHAPE))  # type: ignore[arg-type]


@pytest.mark.parametrize("noise_std", [-0.1, math.nan, math.inf])
def test_bad_noise(noise_std: float) -> None:
    with pytest.raises(InputError, match=rf"standard deviation must be zero or more, got {noise_std}"):
        observe(images(), mask("block", SHAPE), noise_std=noise_std)


def test_bad_degradations() -> None:
    with pytest.raises(InputError, match=r"3 degradations were given for 40 images; give one, or one each"):
        observe(images(), mask("random-each:0.5", SHAPE, count=3))
    with pytest.raises(InputError, match=r"The mask is 1x32x32; the images are 3x16x16"):
        observe(images(), mask("block", (3, 32, 32)))
    with pytest.raises(InputError, match=r"made by recollect.mask\(what, images.shape\); got str"):
        observe(images(), "block")  # type: ignore[arg-type]
