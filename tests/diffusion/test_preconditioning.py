"""The coefficients by their definitions; tests of denoisers hold them against diffusers' schedulers."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.diffusion import Denoiser
from recollect.diffusion.kinds import preconditioning_of
from recollect.diffusion.library import diffusers as library
from recollect.diffusion.preconditioning import EDM, Direct, RectifiedFlow, VariancePreserving, alphas

ALPHAS = tuple(math.cos((t + 1) / 101 * math.pi / 2) ** 2 for t in range(100))


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("t", [0, 40, 99])
def test_the_clean_image_is_found_from_what_the_network_was_taught(prediction: str, t: int) -> None:
    x0, noise, a = 0.7, -1.3, ALPHAS[t]
    known = VariancePreserving(ALPHAS, prediction)
    sigma = float(known.sigmas[t])
    taught = {"epsilon": noise, "sample": x0, "v_prediction": math.sqrt(a) * noise - math.sqrt(1 - a) * x0}[prediction]
    skip, out, scale, time = known.at(sigma)
    assert time == pytest.approx(t)
    assert scale * (x0 + sigma * noise) == pytest.approx(math.sqrt(a) * x0 + math.sqrt(1 - a) * noise)
    assert skip * (x0 + sigma * noise) + out * taught == pytest.approx(x0)


def test_a_rectified_flow_moves_on_a_straight_line() -> None:
    x0, noise, s = 0.7, -1.3, 0.4
    sigma = s / (1 - s)
    skip, out, scale, time = RectifiedFlow(1000).at(sigma)
    assert time == pytest.approx(400)
    assert scale * (x0 + sigma * noise) == pytest.approx((1 - s) * x0 + s * noise)
    assert skip * (x0 + sigma * noise) + out * (noise - x0) == pytest.approx(x0)


def test_edm_scales_inputs_and_targets_to_unit_variance_for_one_level_or_many() -> None:
    """Images with a spread of sigma_data, noise of sigma."""
    for sigma in (0.01, 0.5, 20.0):
        skip, out, scale, time = EDM(0.5).at(sigma)
        assert scale**2 * (0.25 + sigma**2) == pytest.approx(1)
        assert ((1 - skip) ** 2 * 0.25 + skip**2 * sigma**2) / out**2 == pytest.approx(1)
        assert time == pytest.approx(math.log(sigma) / 4)
        many = EDM(0.5).at(torch.tensor([sigma, 1.0], dtype=torch.float64))
        assert [float(part[0]) for part in many] == pytest.approx([skip, out, scale, time])


def test_a_function_is_taken_as_it_is_and_alphas_follow_from_noise_levels() -> None:
    assert Direct().at(0.3) == (0.0, 1.0, 1.0, 0.3)
    assert alphas([1.0, 3.0]) == [0.5, 0.1]
    assert alphas(VariancePreserving(ALPHAS).sigmas.tolist()) == pytest.approx(ALPHAS)


def test_a_schedule_that_ends_in_pure_noise_ends_one_step_earlier() -> None:
    assert len(VariancePreserving((*ALPHAS, 0.0)).sigmas) == len(ALPHAS)


@pytest.mark.parametrize("wrong", [(0.5,), (0.5, 0.6), (1.0, 0.5), (0.5, -0.1), (math.nan, 0.1)])
def test_alphas_that_do_not_fall_are_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="alphas_cumprod must fall"):
        VariancePreserving(wrong)


diffusers = library()
STORED = 2 * torch.rand(5, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64) - 1
MEAN, SPREAD = 0.3, 0.4  # of images whose values are independent and normal

Posterior = Callable[[Tensor, float, float], Tensor]  # E[x0 | image x0 + noise e = z] of x0 and a standard normal e


def of_five_images(z: Tensor, image: float, noise: float) -> Tensor:
    """Bayes' rule: each of five equally likely images counts by the density of the noise that it leaves."""
    left = (z[:, None] - image * STORED) / noise
    return torch.softmax(-left.square().sum(2) / 2, 1) @ STORED


def of_a_gaussian(z: Tensor, image: float, noise: float) -> Tensor:
    return MEAN + image * SPREAD**2 / (image**2 * SPREAD**2 + noise**2) * (z - image * MEAN)


def ddpm_target(prediction: str, posterior: Posterior, alphas_cumprod: Tensor) -> Any:
    """The best network of DDPM and kin: what it is taught, in expectation over all images that z may hide."""

    def network(z: Tensor, time: Tensor) -> Tensor:
        a = float(alphas_cumprod[round(float(time))])
        x0 = posterior(z, math.sqrt(a), math.sqrt(1 - a))
        e = (z - math.sqrt(a) * x0) / math.sqrt(1 - a)
        return {"sample": x0, "epsilon": e, "v_prediction": math.sqrt(a) * e - math.sqrt(1 - a) * x0}[prediction]

    return network


def flow_target(posterior: Posterior, steps: int) -> Any:
    """The best rectified flow: the expected direction from the image to the noise."""

    def network(z: Tensor, time: Tensor) -> Tensor:
        s = float(time) / steps
        x0 = posterior(z, 1 - s, s)
        return (z - (1 - s) * x0) / s - x0

    return network


def edm_target(prediction: str, posterior: Posterior, data: float) -> Any:
    """The best network of EDM, by equation 8 of Karras et al. 2022; v has the other sign."""

    def network(z: Tensor, time: Tensor) -> Tensor:
        sigma = math.exp(4 * float(time))
        x = z * math.sqrt(sigma**2 + data**2)
        x0 = posterior(x, 1.0, sigma)
        taught = (x0 - data**2 / (sigma**2 + data**2) * x) * math.sqrt(sigma**2 + data**2) / (sigma * data)
        return taught if prediction == "epsilon" else -taught

    return network


def settings(kind: str, **own: Any) -> dict[str, Any]:
    return {**getattr(diffusers, kind)(**own).config, "_class_name": kind}


def best_network(kind: str, own: dict[str, Any], posterior: Posterior) -> Any:
    prediction = own.get("prediction_type", "epsilon")
    if kind.startswith("FlowMatch"):
        return flow_target(posterior, 1000)
    if kind.startswith("EDM"):
        return edm_target(prediction, posterior, own["sigma_data"])
    return ddpm_target(prediction, posterior, getattr(diffusers, kind)(**own).alphas_cumprod)


@pytest.mark.parametrize("posterior", [of_five_images, of_a_gaussian])
@pytest.mark.parametrize(
    ("kind", "own"),
    [
        *(("DDPMScheduler", {"prediction_type": name}) for name in ("epsilon", "v_prediction", "sample")),
        ("DDIMScheduler", {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"}),
        ("EulerDiscreteScheduler", {"beta_schedule": "scaled_linear"}),
        ("FlowMatchEulerDiscreteScheduler", {"shift": 3.0}),
        *(("EDMEulerScheduler", {"prediction_type": name, "sigma_data": 0.4}) for name in ("epsilon", "v_prediction")),
    ],
)
def test_of_the_best_network_it_is_the_expected_image(kind: str, own: dict[str, Any], posterior: Posterior) -> None:
    """For such data the best network is known by Bayes' rule; so is D(x; sigma), the expected clean image behind x."""
    denoiser = Denoiser(
        best_network(kind, own, posterior), preconditioning_of(settings(kind, **own), {}), (1, 3, 4), "best"
    )
    x0 = STORED if posterior is of_five_images else MEAN + SPREAD * STORED
    for t in (30, 200, 600):
        sigma = denoiser.sigmas[t]
        x = x0 + sigma * torch.randn(x0.shape, generator=torch.Generator().manual_seed(t), dtype=torch.float64)
        assert torch.allclose(denoiser.clean(x, sigma), posterior(x, 1.0, sigma), atol=2e-5)
