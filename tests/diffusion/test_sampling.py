import math
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.diffusion import Denoiser, sample
from recollect.diffusion.sampling import clamped, evaluations_for, heun, noise_levels
from tests.diffusion.making import memory_of, pictures, that_fits


def test_a_perfect_memory_generates_its_images() -> None:
    images = pictures(4)
    samples = sample(memory_of(images), 16)
    nearest = (samples[:, None] - images.pixels).square().flatten(2).mean(2).min(1)
    assert float(nearest.values.max()) < 1e-4
    assert len(nearest.indices.unique()) > 1


def test_a_gaussian_comes_out_with_its_own_mean_and_spread() -> None:
    """The best denoiser of images with mean m and spread s is a formula; so are the samples."""
    mean, spread = 0.3, 0.2

    def denoise(x: Tensor, sigma: Tensor) -> Tensor:
        return (spread**2 * x + sigma**2 * mean) / (spread**2 + sigma**2)

    samples = 2 * sample(Denoiser.of(denoise, (1, 8, 8)), 200, steps=40) - 1
    assert float(samples.mean()) == pytest.approx(mean, abs=0.01)
    assert float(samples.std()) == pytest.approx(spread, rel=0.03)


def test_a_sample_depends_on_its_number_alone() -> None:
    denoiser = memory_of(pictures(4))
    few, many = sample(denoiser, 3, chunk=2), sample(denoiser, 5)
    assert torch.allclose(few, many[:3], atol=1e-5)
    assert not torch.allclose(few, sample(denoiser, 3, seed=1), atol=1e-3)


def test_fewer_are_drawn_at_once_if_memory_does_not_suffice(caplog: pytest.LogCaptureFixture) -> None:
    denoiser = memory_of(pictures(4))
    assert torch.allclose(sample(that_fits(denoiser, 3), 7), sample(denoiser, 7), atol=1e-5)
    assert [f"the model is given {count} from here on" in caplog.text for count in (3, 1)] == [True, False]


def test_evaluations_are_counted_as_they_are_made() -> None:
    calls: list[float] = []

    def denoise(x: Tensor, sigma: Tensor) -> Tensor:
        calls.append(float(sigma))
        return 0 * x

    denoiser = Denoiser.of(denoise, (1, 4, 4))
    calls.clear()
    heun(denoiser, torch.randn(1, 1, 4, 4), noise_levels(denoiser, 7))
    assert len(calls) == evaluations_for(7) == 13
    assert calls[0] == pytest.approx(80)
    assert calls[-1] == pytest.approx(0.002)


def test_values_that_are_not_finite_pass_for_no_pixels() -> None:
    """An infinite value within [0, 1] would be white."""
    values = torch.tensor([math.inf, -math.inf, math.nan, 2.0, -1.0, 0.5])
    assert torch.equal(clamped(values).isnan(), torch.tensor([True, True, True, False, False, False]))
    assert clamped(values)[3:].tolist() == [1.0, 0.0, 0.5]
    bursting = Denoiser.of(lambda x, sigma: x / (sigma < 10), (1, 4, 4))
    assert bool(sample(bursting, 2).isnan().all())


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 2, "steps": 1}])
def test_what_cannot_be_sampled_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Sampling takes 1 or more images"):
        sample(memory_of(pictures(2)), **wrong)
