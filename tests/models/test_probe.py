"""The probe says before long work what would go wrong in it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import Images, InputError
from recollect.models import at_most, open_model, probe_model
from tests.models.making import images, tiny


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
        (lambda x: (x * 0.9 - x).square().mean(), "returned a single number, as a loss is; give a function of images"),
        (open_model(lambda x: x.mean(), flat=True), "returned scalar for 5 flat images"),
        (open_model(tiny(), flat=True), r"leave flat=True \(--flat\) out, with which it runs"),
        (open_model(tiny(), layout="nhwc"), r"leave layout='nhwc' \(--layout nhwc\) out, with which it runs"),
        (open_model(tiny(), layout="nhwc", flat=True), r"leave layout=.* and flat=True \(--flat\) out, with which"),
        (lambda x: x.double(), "returned torch.float64 .*model.float"),
        (lambda x: (255 * x).byte(), "returned torch.uint8 .*give a function of images that converts"),
        (lambda x: x.to_sparse(), "returned a tensor of layout torch.sparse_coo .*give a function of images"),
        (lambda x: x.to("meta"), "images on meta.*--device meta"),
        (lambda x, t: x + t, "called with images alone: give a function of images that calls it"),
        (type("Parts", (nn.Module,), {})(), "it has no forward: give a function of images"),
        (lambda x: x / 0, "NaN or infinite"),
        (tiny(1), "--channels 1"),
        (nn.Linear(192, 192), "--flat"),
        (nn.Conv2d(5, 5, 1), "cannot take images of 3x8x8 .*expected input"),
        (nn.Linear(3, 3), "cannot take images"),
        (tiny().half(), "weights are torch.float16.*model.float"),
        (7, "got an int"),
    ],
)
def test_what_does_not_fit_is_said(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_model(model, images())


def test_a_scripted_model_of_two_arguments() -> None:
    class OfTwo(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    with pytest.raises(InputError, match=r"missing value for argument 'y'.*is called with images alone"):
        probe_model(torch.jit.script(OfTwo()), images())


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


def takes(most: int, given: list[int]) -> Any:
    def model(x: Tensor) -> Tensor:
        given.append(len(x))
        if len(x) > most:
            raise ValueError(f"at most {most} images")
        return 0.98 * x

    return model


@pytest.mark.parametrize(("most", "advice"), [(14, "--chunk 8"), (5, "--chunk 4"), (1, "--batch 1")])
def test_a_model_of_few_images_at_a_time(most: int, advice: str) -> None:
    given: list[int] = []
    model = takes(most, given)
    with pytest.raises(InputError, match=rf"at most {most} images.*{advice}"):
        probe_model(model, images(16))
    given.clear()
    assert probe_model(at_most(model, most), images(16)).deterministic
    assert max(given) == most


def test_a_limit_that_is_too_high_is_told_with_one_that_fits() -> None:
    with pytest.raises(InputError, match=r"it takes 2 images at once: set chunk=2 \(--chunk 2\)"):
        probe_model(at_most(takes(3, []), 5), images(16))


def test_a_model_of_a_fixed_number_of_images() -> None:
    with pytest.raises(InputError, match=r"it takes 4 images at once and not one: set batch=4 \(--batch 4\)"):
        probe_model(lambda x: x.view(4, 3, 8, 8), images(16))


def test_colour_images_for_a_grey_model() -> None:
    with pytest.raises(InputError, match="convert the images to grey"):
        probe_model(open_model(tiny(1), channels=1), images())
    grey = images(shape=(1, 8, 8)).repeat(1, 3, 1, 1)
    assert probe_model(open_model(tiny(1), channels=1), grey).images == 5


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (nn.Linear(12, 12), (10,), r"cannot take rows of 10 \(.*check the shape of the rows"),
        (nn.Conv1d(2, 2, 2), (2, 30), "returned 16x2x29 for signals of 16x2x30; .*check the shape of the signals"),
    ],
)
def test_signals_and_rows_are_called_so(model: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_model(model, Images(torch.rand(16, *shape)))
