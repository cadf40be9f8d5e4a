from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import InputError
from recollect.diffusion import Prior
from recollect.diffusion.prior import v_target
from tests.gaussian import cosine_alphas

ALPHAS = cosine_alphas(10)


class Answers(nn.Module):
    """A network that knows the answer and gives it in the form asked for."""

    def __init__(self, answer: Tensor, **config: Any) -> None:
        super().__init__()
        self.answer = nn.Parameter(answer)
        self.config = {"sample_size": 4, "in_channels": 3, "out_channels": 3} | config

    def forward(self, _x: Tensor, _t: int, return_dict: bool) -> tuple[Tensor]:
        assert not return_dict
        return (self.answer,)


def schedule(prediction: str) -> Any:
    return SimpleNamespace(alphas_cumprod=ALPHAS, config={"prediction_type": prediction})


@pytest.mark.parametrize("t", [0, 4, 9])
@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
def test_whatever_the_network_predicts_the_noise_is_found(prediction: str, t: int) -> None:
    images, noise = (torch.randn(2, 3, 4, 4, dtype=torch.float64) for _ in range(2))
    a = ALPHAS[t]
    answer = {"epsilon": noise, "sample": images, "v_prediction": v_target(images, noise, a)}[prediction]
    prior = Prior(Answers(answer), schedule(prediction), "p")
    assert torch.allclose(prior(a.sqrt() * images + (1 - a).sqrt() * noise, t), noise)


def test_it_says_its_size_and_its_weights() -> None:
    first, same, other = (Prior(Answers(torch.full((1,), v)), schedule("epsilon"), "p") for v in (1.0, 1.0, 2.0))
    assert first.shape == (3, 4, 4)
    assert str(first) == str(same) == f"p, weights {first.weights_hash}"
    assert str(first) != str(other)
    tall = Prior(Answers(torch.zeros(1), sample_size=(6, 4)), schedule("epsilon"), "p")
    assert tall.shape == (3, 6, 4)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"sample_size": None}, "does not say the size of its images"),
        ({"num_class_embeds": 10}, "wants a class for each image"),
        ({"class_embed_type": "timestep"}, "wants a class for each image"),
        ({"out_channels": 6}, "takes 3 channels and gives 6"),
    ],
)
def test_networks_of_another_kind_are_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Prior(Answers(torch.zeros(1), **config), schedule("epsilon"), "p")


def test_predictions_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match="predicts 'flow'; known are epsilon, v_prediction, sample"):
        Prior(Answers(torch.zeros(1)), schedule("flow"), "p")
