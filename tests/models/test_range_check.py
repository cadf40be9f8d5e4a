"""A wrong range of values is told with the one that fits."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, InputError
from recollect.models import open_model, probe_model, stated_parts
from tests.models.making import images, tiny

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def fitted(low: float, high: float, squash: bool = False) -> Any:
    """A model that knows its images by heart, in its own range alone: outside it clips, as a trained one does."""

    def model(x: Tensor) -> Tensor:
        kept = x.clamp(low + (high - low) * 0.01, high - (high - low) * 0.01)
        return (kept - low) / (high - low) if squash else kept.where((kept - x).abs() < (high - low) * 0.05, -kept)

    return model


@pytest.mark.parametrize(("low", "high", "words"), [(-1, 1, "--input-range -1,1"), (0, 255, "--input-range 0,255")])
def test_a_wrong_range_is_told_with_the_one_that_fits(low: float, high: float, words: str) -> None:
    model = fitted(low, high)
    with pytest.raises(InputError, match=f"range of values looks wrong.*{words}"):
        probe_model(open_model(lambda x: model(x) if high > 1 else model(x).where(x.amin() < 0, 1 - x)), images())
    assert probe_model(open_model(model, input_range=(low, high)), images()).mse < 2e-3


def test_a_stated_range_holds_though_another_fits_better() -> None:
    found = probe_model(open_model(fitted(0, 1), input_range="-1,1"), images())
    assert found.range_doubt.startswith("The stated range of values is used although another fits far better")
    assert "--input-range 0,1" in found.range_doubt
    assert probe_model(open_model(fitted(0, 1)), images()).range_doubt == ""


class Residual(nn.Module):
    """x + g(x) with a bounded g: in grey levels from 0 to 255 anything is reproduced."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.6 * torch.tanh(5 * x - 2)


@pytest.mark.parametrize("model", [Residual(), lambda x: Residual()(x)], ids=["module", "function"])
def test_a_residual_model_is_refused_only_where_no_range_is_stated(model: Any) -> None:
    with pytest.raises(
        InputError, match=r"--input-range 0,255.*or state input_range='0,1' \(--input-range 0,1\) to keep"
    ):
        probe_model(open_model(model), images())
    assert "0,255" in probe_model(open_model(model, input_range="0,1"), images()).range_doubt
    options: dict[str, Any] = {"input_range": "0,1"}
    assert "0,255" in probe_model(open_model(model), images(), stated=stated_parts(options)).range_doubt


def test_a_network_of_recollect_stays_itself_if_the_default_range_is_stated() -> None:
    network = FullyConnected((3, 8, 8), layers=2, width=4)
    assert open_model(network, input_range="0,1") is network


def test_an_output_range_of_its_own() -> None:
    model = fitted(-1, 1, squash=True)
    with pytest.raises(InputError, match=r"with output_range='0,1' .* or state output_range='-1,1' "):
        probe_model(open_model(model, input_range="-1,1"), images())
    assert probe_model(open_model(model, input_range="-1,1", output_range="0,1"), images()).mse < 2e-3


def test_an_output_in_grey_levels_is_told() -> None:
    model = fitted(0, 1)
    with pytest.raises(InputError, match=r"--output-range 0,255.*or state output_range='0,1' .* to keep it"):
        probe_model(lambda x: 255 * model(x), images())


def test_following_either_advice_on_the_range_of_the_output_ends_the_question() -> None:
    def grey_levels(x: Tensor) -> Tensor:
        return 255 * fitted(0, 1)(x)

    assert probe_model(open_model(grey_levels, output_range="0,255"), images()).mse < 2e-3
    kept = probe_model(open_model(grey_levels, output_range="0,1"), images())
    assert kept.range_doubt.startswith("The stated range of the output is used although another fits far better")


def test_no_range_is_advised_that_would_not_help() -> None:
    def noise(x: Tensor) -> Tensor:
        return 100 * torch.sin(1e4 * x)

    assert probe_model(noise, images()).mse > 1


@pytest.mark.parametrize("model", [lambda x: 0 * x + 0.5, lambda x: x.mean((2, 3), keepdim=True).sigmoid() + 0 * x])
@pytest.mark.parametrize("input_range", [None, "0,1"])
def test_a_range_under_which_dark_images_are_black_is_not_advised(model: Any, input_range: str | None) -> None:
    dark = 0.02 + images(16) / 100
    found = probe_model(open_model(model, input_range=input_range), dark)
    assert (found.mse > 0.1, found.range_doubt) == (True, "")


@pytest.mark.parametrize("input_range", [None, "0,1"])
def test_noise_that_a_model_adds_is_not_blamed_on_its_range(input_range: str | None) -> None:
    def model(x: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x)

    found = probe_model(open_model(model, input_range=input_range), images(16))
    assert not found.deterministic
    assert (found.mse > 5e-3, found.range_doubt) == (True, "")


def test_of_a_random_model_in_a_wrong_range_the_randomness_is_told_first() -> None:
    model = fitted(-1, 1)
    with pytest.raises(
        InputError, match=r"wrong: two of the model's answers .* differ .*; as given.*--input-range -1,1"
    ):
        probe_model(lambda x: model(x).where(x.amin() < 0, 1 - x) + 1e-3 * torch.randn_like(x), images())


def test_normalised_input_is_recognised() -> None:
    def model(x: Tensor) -> Tensor:
        """Knows ImageNet's normalisation, and returns pixels."""
        mean, std = (torch.tensor(IMAGENET[k]).view(1, 3, 1, 1) for k in ("mean", "std"))
        return x * std + mean

    with pytest.raises(InputError, match=r"--mean 0.485,0.456,0.406.*--std 0.229.*--output-range 0,1"):
        probe_model(open_model(model), images())
    opened = open_model(model, mean=IMAGENET["mean"], std=IMAGENET["std"], output_range="0,1")
    assert probe_model(opened, images()).mse < 1e-6


def test_an_untrained_model_is_not_blamed_on_its_range() -> None:
    assert probe_model(tiny(), images()).mse > 1e-2


class ChannelsLast(nn.Module):
    """Knows its images as flat vectors with the channels last: it runs with channels first, and gives nonsense."""

    def __init__(self, *, logits: bool = False) -> None:
        super().__init__()
        self.stored = images().permute(0, 2, 3, 1).flatten(1)
        self.values = self.stored.logit(1e-6) if logits else self.stored

    def forward(self, x: Tensor) -> Tensor:
        return (torch.softmax(-100 * torch.cdist(x.flatten(1), self.stored), 1) @ self.values).view_as(x)


def test_channels_last_are_found_and_proposed() -> None:
    with pytest.raises(InputError, match=r"The layout looks wrong: .* and with layout='nhwc' \(--layout nhwc\) it is"):
        probe_model(ChannelsLast(), images())
    assert probe_model(open_model(ChannelsLast(), layout="nhwc"), images()).mse < 1e-6
    stated = stated_parts({"layout": "nchw"})
    doubt = probe_model(open_model(ChannelsLast(), layout="nchw"), images(), stated=stated).range_doubt
    assert doubt.startswith("The stated layout is used although another fits far better")


def test_logits_are_found_and_proposed() -> None:
    with pytest.raises(InputError, match=r"The layout and the output look wrong: .*nhwc.* and output='sigmoid'"):
        probe_model(ChannelsLast(logits=True), images())
    several = nn.Sequential(ChannelsLast(logits=True), Several())
    with pytest.raises(InputError, match=r"The output looks wrong: .*output='image.sigmoid' .*output_range='0,1'"):
        probe_model(open_model(several, layout="nhwc", output="image"), images())
    assert probe_model(open_model(several, layout="nhwc", output="image.sigmoid"), images()).mse < 1e-6


class Several(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"image": x}


def test_a_blurred_model_of_logits_is_found_too() -> None:
    """A variational autoencoder: its error is far from a fit, and far below that of one grey."""

    def blurred(x: Tensor) -> Tensor:
        return nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False).lerp(x, 0.6).clamp(0.01, 0.99).logit()

    with pytest.raises(InputError, match=r"The output looks wrong.*--output sigmoid"):
        probe_model(blurred, images())
    assert probe_model(open_model(blurred, output="sigmoid"), images()).mse > 2e-3
