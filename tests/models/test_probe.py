"""The probe says before long work what would go wrong in it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import Images, InputError
from recollect.models import open_model, probe_model
from tests.models.making import images, tiny

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def fitted(low: float, high: float, squash: bool = False) -> Any:
    """A model that knows its images by heart, in its own range alone: outside it clips, as a trained one does."""

    def model(x: Tensor) -> Tensor:
        kept = x.clamp(low + (high - low) * 0.01, high - (high - low) * 0.01)
        return (kept - low) / (high - low) if squash else kept.where((kept - x).abs() < (high - low) * 0.05, -kept)

    return model


def test_a_good_model_passes() -> None:
    found = probe_model(lambda x: x * 0.99, Images(images(40)))
    assert found.deterministic
    assert found.images == 16
    assert 0 < found.mse < 1e-4
    model = tiny().train()
    assert probe_model(model, images()).deterministic
    assert model.training


def test_chance_is_reported_and_no_error() -> None:
    assert not probe_model(lambda x: x + 1e-3 * torch.randn_like(x), images()).deterministic
    dropping = nn.Sequential(nn.Dropout(0.5))
    assert probe_model(dropping, images()).deterministic  # in eval mode


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda x: x[:, :, :4], r"returned 5x3x4x8 for images of 5x3x8x8; .*size=N"),
        (lambda x: x.flatten(1), "--flat"),
        (lambda x: x.double(), "returned torch.float64"),
        (lambda x: x.to("meta"), "images on meta.*--device meta"),
        (lambda x: x / 0, "NaN or infinite"),
        (tiny(1), "--channels 1"),
        (nn.Linear(192, 192), "--flat"),
        (nn.Conv2d(5, 5, 1), "cannot take images of 3x8x8 .*expected input"),
        (nn.Linear(3, 3), "cannot take images"),
        (tiny().half(), "weights are torch.float16.*model.float"),
        (7, "got a int"),
    ],
)
def test_what_does_not_fit_is_said(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_model(model, images())


def test_weights_on_two_devices() -> None:
    model = nn.Sequential(tiny(), nn.Linear(1, 1, device="meta"))
    with pytest.raises(InputError, match=r"several devices \(cpu, meta\)"):
        probe_model(model, images())


def test_a_model_of_one_image_at_a_time() -> None:
    def single(x: Tensor) -> Tensor:
        return x.view(1, 3, 8, 8)

    with pytest.raises(InputError, match="--batch 1"):
        probe_model(single, images())
    assert probe_model(open_model(single, batch=1), images()).mse == 0


@pytest.mark.parametrize(("low", "high", "words"), [(-1, 1, "--input-range -1,1"), (0, 255, "--input-range 0,255")])
def test_a_wrong_range_is_told_with_the_one_that_fits(low: float, high: float, words: str) -> None:
    model = fitted(low, high)
    with pytest.raises(InputError, match=f"range of values looks wrong.*{words}"):
        probe_model(open_model(lambda x: model(x) if high > 1 else model(x).where(x.amin() < 0, 1 - x)), images())
    assert probe_model(open_model(model, input_range=(low, high)), images()).mse < 2e-3


def test_a_range_that_was_set_though_none_was_needed() -> None:
    with pytest.raises(InputError, match="--input-range 0,1"):
        probe_model(open_model(fitted(0, 1), input_range="-1,1"), images())


def test_an_output_range_of_its_own() -> None:
    model = fitted(-1, 1, squash=True)
    with pytest.raises(InputError, match=r"--input-range -1,1.*--output-range 0,1"):
        probe_model(open_model(model, input_range="-1,1"), images())
    assert probe_model(open_model(model, input_range="-1,1", output_range="0,1"), images()).mse < 2e-3


def test_an_output_in_grey_levels_is_told() -> None:
    model = fitted(0, 1)
    with pytest.raises(InputError, match="--output-range 0,255"):
        probe_model(lambda x: 255 * model(x), images())


def test_no_range_is_advised_that_would_not_help() -> None:
    def noise(x: Tensor) -> Tensor:
        return 100 * torch.sin(1e4 * x)

    assert probe_model(noise, images()).mse > 1


def test_normalised_input_is_recognised() -> None:
    def model(x: Tensor) -> Tensor:
        """Knows ImageNet's normalisation, and gives pixels back."""
        mean, std = (torch.tensor(IMAGENET[k]).view(1, 3, 1, 1) for k in ("mean", "std"))
        return x * std + mean

    with pytest.raises(InputError, match=r"--mean 0.485,0.456,0.406.*--std 0.229.*--output-range 0,1"):
        probe_model(open_model(model), images())
    assert probe_model(open_model(model, **IMAGENET, output_range="0,1"), images()).mse < 1e-6


def test_an_untrained_model_is_not_blamed_on_its_range() -> None:
    assert probe_model(tiny(), images()).mse > 1e-2


def test_colour_images_for_a_grey_model() -> None:
    with pytest.raises(InputError, match="convert the images to grey"):
        probe_model(open_model(tiny(1), channels=1), images())
    grey = images(shape=(1, 8, 8)).repeat(1, 3, 1, 1)
    assert probe_model(open_model(tiny(1), channels=1), grey).images == 5
