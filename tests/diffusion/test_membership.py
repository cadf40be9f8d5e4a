import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import Images, InputError
from recollect.diffusion import Denoiser, open_denoiser
from recollect.diffusion.library import diffusers
from recollect.diffusion.membership import RATIO, denoising_loss, secmi
from tests.diffusion.folders import write_folder
from tests.diffusion.making import memory_of, pictures, that_fits


def separated(train: Tensor, control: Tensor) -> bool:
    return float(train.max()) < float(control.min())


@pytest.mark.parametrize("sigma", [0.1, 0.4])
def test_a_memory_denoises_its_own_images_better_than_others(sigma: float) -> None:
    images, unseen = pictures(6), pictures(5, seed=1)
    denoiser = memory_of(images)
    assert separated(*(denoising_loss(denoiser, one, sigma, draws=2) for one in (images, unseen)))


def test_the_loss_is_that_of_the_noise_stated() -> None:
    """A denoiser that leaves everything as it is errs by the variance of the noise: (sigma / 2)^2 in [0, 1]."""
    denoiser = Denoiser.of(lambda x, sigma: x, (3, 8, 8))
    loss = denoising_loss(denoiser, pictures(20), 0.4, draws=8)
    assert float(loss.mean()) == pytest.approx(0.2**2, rel=0.03)
    part = denoising_loss(denoiser, pictures(20)[3:5], 0.4, draws=8)
    assert torch.allclose(part, loss[3:5])  # the noise is the image's own


@pytest.mark.parametrize("measure", [denoising_loss, secmi])
def test_fewer_images_are_taken_at_once_if_memory_does_not_suffice(measure: Any) -> None:
    images, denoiser = pictures(5), memory_of(pictures(4))
    assert torch.allclose(measure(that_fits(denoiser, 2), images, 0.4), measure(denoiser, images, 0.4))


def test_secmi_is_zero_where_the_flow_is_straight_and_counts_its_evaluations() -> None:
    calls: list[float] = []

    def towards_grey(x: Tensor, sigma: Tensor) -> Tensor:
        calls.append(float(sigma))
        return 0 * x

    denoiser = Denoiser.of(towards_grey, (3, 8, 8))
    calls.clear()
    errors = secmi(denoiser, pictures(3), 0.3, steps=5)
    assert len(calls) == 5 + 2
    assert float(errors.max()) < 1e-10
    assert calls[-2:] == pytest.approx([0.3, 0.33])


def test_secmi_tells_a_memory_of_smooth_images_from_unseen_ones() -> None:
    """Independent of SecMI's code: the t-error of the exact denoiser, written out, agrees."""
    images = pictures(4)
    denoiser, sigma, ratio = memory_of(images), 0.5, 1.2
    errors = secmi(denoiser, images, sigma, steps=3, ratio=ratio)
    x = 2 * images.pixels - 1
    levels = [0.01, 0.01 * 50 ** (1 / 3), 0.01 * 50 ** (2 / 3), sigma]
    for now, then in pairwise(levels):
        x = x + (then - now) * (x - denoiser.clean(x, now)) / now
    up = x + (ratio - 1) * (x - denoiser.clean(x, sigma))
    back = up + (1 / ratio - 1) * (up - denoiser.clean(up, sigma * ratio))
    assert torch.allclose(errors, ((back - x) / 2).square().flatten(1).mean(1).double(), rtol=1e-3, atol=1e-9)


def test_secmi_is_that_of_its_authors_in_the_terms_of_ddpm(tmp_path: Path) -> None:
    """Theirs moves x_t between time steps by the predicted noise: to t, one stride up, and back."""
    images, t, above = pictures(4), 100, 110
    denoiser = open_denoiser(write_folder(tmp_path, diffusers().DDPMScheduler(1000)))
    a = denoiser.alphas_cumprod.tolist()

    def moved(x: Tensor, now: int, then: int) -> Tensor:
        noise = denoiser.network(x, now).sample
        clean = (x - math.sqrt(1 - a[now]) * noise) / math.sqrt(a[now])
        return math.sqrt(a[then]) * clean + math.sqrt(1 - a[then]) * noise

    inverted = moved(2 * images.pixels - 1, 0, t)
    error = (moved(moved(inverted, t, above), above, t) - inverted).square().flatten(1).mean(1)
    sigma, highest = denoiser.sigmas[t], denoiser.sigmas[above]
    found = secmi(denoiser, images, sigma, steps=1, ratio=highest / sigma)
    assert torch.allclose(4 * a[t] * found, error.double(), rtol=1e-3)  # x_t is smaller, and in [-1, 1]
    assert highest / sigma == pytest.approx(RATIO, abs=0.01)  # the stride of their paper


def test_wrong_sizes_and_levels_are_refused() -> None:
    denoiser = memory_of(pictures(2))
    with pytest.raises(InputError, match="takes images of 3x8x8"):
        denoising_loss(denoiser, Images(torch.rand(2, 1, 8, 8)), 0.2)
    for measure in (denoising_loss, secmi):
        with pytest.raises(InputError, match="The noise level is a number"):
            measure(denoiser, pictures(2), 500.0)
