import math
from typing import Any

import pytest
import torch

from recollect import InputError
from recollect.diffusion import DenoiserRecipe
from recollect.diffusion.recipe import SCHEDULES


def test_the_rate_rises_stays_for_half_of_the_training_and_falls_along_a_cosine() -> None:
    recipe = DenoiserRecipe(rate=1.0, warm_up=4)
    assert recipe.rate_at(1, 0.0) == 0.25
    assert recipe.rate_at(4, 0.0) == recipe.rate_at(100, 0.5) == 1.0
    assert recipe.rate_at(100, 0.75) == pytest.approx(0.5)
    assert recipe.rate_at(100, 1.0) == recipe.rate_at(100, 7.0) == pytest.approx(0.0)


def test_noise_levels_follow_their_schedules() -> None:
    shares = (torch.arange(10_000) + 0.5) / 10_000
    logarithms = SCHEDULES["edm"](shares).log()
    assert float(logarithms.mean()) == pytest.approx(-1.2, abs=0.03)
    assert float(logarithms.std()) == pytest.approx(1.2, abs=0.03)
    cosine = SCHEDULES["cosine"](shares)
    kept = 1 / (1 + cosine**2)  # how much of the image is left, as a variance
    inside = (cosine > 0.01) & (cosine < 50)
    assert torch.allclose(kept[inside], torch.cos(shares * math.pi / 2)[inside] ** 2, atol=1e-4)


def test_it_is_chosen_by_the_size_and_the_device() -> None:
    assert DenoiserRecipe.for_size(32, "cuda") == DenoiserRecipe()
    large = DenoiserRecipe.for_size(64, "cuda")
    assert (len(large.settings["widths"]), large.batch) == (4, 64)
    assert DenoiserRecipe.for_size(32, "cpu").batch == 16
    assert DenoiserRecipe.for_size(64, "cuda", batch=7, seed=1).batch == 7
    assert DenoiserRecipe.for_size(32, "cpu", network="residual").settings == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "square"}, "There is no schedule 'square'; choose from edm, cosine"),
        ({"network": "tree"}, "There is no denoising network 'tree'; choose from"),
        (
            {"network": "residual", "settings": {"widths": (8, 8)}},
            "residual has no widths; its settings are width, blocks",
        ),
        ({"settings": {"widths": (0,)}}, r"widths is made of whole numbers from 1 to 8192; got \(0,\)"),
        ({"rate": 0.0}, "learning rate is a positive number"),
        ({"rate": math.nan}, "learning rate is a positive number"),
        ({"batch": 0}, "batch and warm_up are whole numbers"),
        ({"seed": -1}, "A seed is a whole number"),
    ],
)
def test_settings_that_do_not_work_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        DenoiserRecipe(**settings)
