"""The prior that comes with the package."""

import pytest
import torch

from recollect import load, mask, observe
from recollect.diffusion import Denoiser, bundled
from recollect.diffusion.opening import BUNDLED
from recollect.methods import DDNM
from recollect.scoring import Score


@pytest.fixture(scope="module")
def prior() -> Denoiser:
    return bundled()


def test_it_ships_in_twelve_megabytes_and_says_what_it_was_trained_on(prior: Denoiser) -> None:
    assert (BUNDLED / "diffusion_pytorch_model.safetensors").stat().st_size <= 12e6
    assert prior.shape == (3, 32, 32)
    assert prior.card is not None
    assert prior.card.trained_on == "40,000 CIFAR-10 training images (JPEG copies)"
    assert prior.card.images == len(prior.card.content) == len(prior.card.perceptual) == 40_000
    assert prior.card.overlap(load("photos?count=10&size=32")).exact == 0


def test_it_finds_the_noise_in_photographs(prior: Denoiser) -> None:
    """Far better than taking everything for noise, or nothing."""
    x = 2 * load("photos?count=4&size=32").pixels - 1
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    for t, share in ((100, 0.6), (300, 0.25), (600, 0.1)):
        a = float(prior.alphas_cumprod[t])
        with torch.no_grad():
            found = prior.noise(a**0.5 * x + (1 - a) ** 0.5 * noise, t)
        assert float((found - noise).square().mean()) < share, t


@pytest.mark.slow
def test_it_restores_scattered_pixels_of_photographs(prior: Denoiser) -> None:
    images = load("photos?count=4&size=32")
    seen = observe(images, mask("scatter", images.shape))
    found = DDNM(prior, steps=30, eta=1.0)(None, seen.y, seen.truth)
    assert Score.of(found.estimate, images.pixels).mean_psnr > Score.of(seen.y, images.pixels).mean_psnr + 10
