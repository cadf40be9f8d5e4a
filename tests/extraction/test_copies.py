import numpy as np
import pytest
import torch

from recollect import Images, InputError
from recollect.extraction import find_copies
from tests.diffusion.making import pictures


def test_it_is_the_nearest_of_all_by_a_direct_comparison() -> None:
    images = pictures(30)
    samples = (images.pixels[[4, 9, 9]] + 0.01 * torch.randn(3, 3, 8, 8)).clamp(0, 1)
    found = find_copies(samples, images)
    direct = (samples[:, None].double() - images.pixels.double()).square().flatten(2).mean(2).min(1)
    assert found.by_pixels.tolist() == direct.indices.tolist() == [4, 9, 9]
    assert np.allclose(found.mse, direct.values.numpy())
    assert found.distinct(1e-3).tolist() == [4, 9]
    assert found.captures(1e-3, 30)[[4, 9]].tolist() == [1, 2]
    assert not len(found.distinct(1e-9))


def test_a_copy_is_exact_although_fast_distances_are_not() -> None:
    images = pictures(30)
    assert find_copies(images.pixels, images).mse.max() == 0


def test_one_tile_that_differs_is_no_copy_by_the_patch_rule() -> None:
    images = pictures(5)
    sample = images.pixels[2:3].clone()
    sample[:, :, :2, :2] = 1 - sample[:, :, :2, :2]  # one of 16 tiles
    found = find_copies(sample, images[2:3])
    assert found.by_pixels.tolist() == found.by_patches.tolist() == [0]
    tile = (sample - images.pixels[2]).double()[:, :, :2, :2].square().mean().sqrt()
    assert found.patch_distance[0] == pytest.approx(float(tile))
    assert found.mse[0] == pytest.approx(float(tile) ** 2 / 16)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="The samples are 3x4x4 and the training images 3x8x8"):
        find_copies(torch.rand(1, 3, 4, 4), Images(torch.rand(2, 3, 8, 8)))
