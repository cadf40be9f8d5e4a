"""The coefficients by their definitions; tests of denoisers hold them against diffusers' schedulers."""

import math

import pytest
import torch

from recollect import InputError
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
