"""Stated options: ranges, outputs, channels, batches and flat vectors."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from recollect import Blind, InputError
from recollect.models import open_model, probe_model
from tests.models.making import images, tiny


class Recorder(nn.Module):
    """The identity, which remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return x


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({"input_range": "-1,1"}, -1, 1),
        ({"input_range": (-1, 1)}, -1, 1),
        ({"input_range": "[-1, 1]"}, -1, 1),
        ({"input_range": "0-255"}, 0, 255),
        ({"mean": 0.5, "std": "0.25"}, -2, 2),
        ({"mean": "0.5,0.5,0.5", "std": (0.25, 0.25, 0.25)}, -2, 2),
        ({"mean": (0.5, 0.5, 0.5), "std": 0.25}, -2, 2),
        ({"input_range": "0-1"}, 0, 1),
    ],
)
def test_ranges_are_applied_and_undone(options: dict[str, Any], low: float, high: float) -> None:
    model = Recorder()
    x = images()
    x[0, 0, 0, 0], x[0, 0, 0, 1] = 0, 1
    out = open_model(model, **options)(x)
    assert float(model.seen[0].min()) == pytest.approx(low)
    assert float(model.seen[0].max()) == pytest.approx(high)
    assert torch.allclose(out, x, atol=1e-6)


def test_statistics_are_per_channel() -> None:
    model = Recorder()
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    open_model(model, mean=mean, std=std)(images())
    assert torch.allclose(model.seen[0][:, 2], (images()[:, 2] - 0.3) / 0.7, atol=1e-6)
    with pytest.raises(InputError, match="mean and std have 3 numbers"):
        open_model(model, mean=mean, std=std)(images(shape=(1, 8, 8)))


def test_an_output_in_another_range_than_the_input() -> None:
    opened = open_model(lambda x: (x + 1) / 2, input_range="-1,1", output_range="0,1")
    assert torch.allclose(opened(images()), images(), atol=1e-6)


def test_grey_images_for_a_colour_model_and_the_reverse() -> None:
    model = Recorder()
    grey = images(shape=(1, 8, 8))
    assert torch.allclose(open_model(model, channels=3)(grey), grey, atol=1e-6)
    assert model.seen[-1].shape == (5, 3, 8, 8)
    colour = grey.repeat(1, 3, 1, 1)
    assert torch.allclose(open_model(model, channels=1)(colour), colour, atol=1e-6)
    assert model.seen[-1].shape == (5, 1, 8, 8)
    assert torch.equal(open_model(model, channels=3)(images()), images())  # already so


def test_channels_last() -> None:
    seen: list[Tensor] = []

    def model(x: Tensor) -> Tensor:
        seen.append(x)
        return x * torch.tensor([1.0, 2.0, 3.0])

    x = images()
    out = open_model(model, layout="nhwc", batch=3)(x)
    assert seen[0].shape == (3, 8, 8, 3)
    assert seen[0].is_contiguous()
    assert torch.equal(out, x * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1))
    flat = open_model(lambda v: seen.append(v) or v, layout="nhwc", flat=True, mean="0.1,0.2,0.3", std="0.5,0.6,0.7")
    assert torch.allclose(flat(x), x, atol=1e-6)
    assert torch.allclose(seen[-1].view(5, 8, 8, 3)[..., 1], (x[:, 1] - 0.2) / 0.6, atol=1e-6)
    with pytest.raises(InputError, match=r"layout is nchw or nhwc \(channels last\), got 'hwc'"):
        open_model(model, layout="hwc")
    with pytest.raises(InputError, match=r"its channels come first, so leave layout='nhwc' \(--layout nhwc\) out"):
        open_model(lambda v: v.flatten(1).view(-1, 3, 8, 8), layout="nhwc")(x)


def test_the_sigmoid_of_logits_is_in_0_to_1_whatever_the_input_is() -> None:
    x = images()
    for input_range in ("0,1", "-1,1"):
        opened = open_model(torch.zeros_like, output="sigmoid", input_range=input_range)
        assert torch.allclose(opened(x), torch.full_like(x, 0.5))
    named = open_model(lambda v: {"sigmoid": v, "logits": -v}, output="sigmoid")
    assert torch.equal(named(x), x)  # a part of that name is what is asked for


def test_a_fixed_batch_is_filled() -> None:
    model = Recorder()
    assert torch.equal(open_model(model, batch=4)(images(9)), images(9))
    assert [len(x) for x in model.seen] == [4, 4, 4]
    assert torch.equal(model.seen[-1][1:], images(9)[8:].expand(3, -1, -1, -1))


def test_flat_vectors() -> None:
    model = nn.Linear(192, 192)
    opened = open_model(model, flat=True, input_range="-1,1")
    same = (model(images().flatten(1) * 2 - 1) + 1) / 2
    assert torch.allclose(opened(images()).flatten(1), same, atol=1e-6)
    with pytest.raises(InputError, match="as many values as it is given"):
        open_model(nn.Linear(192, 5), flat=True)(images())
    with pytest.raises(InputError, match="--flat"):
        open_model(lambda x: x.flatten(1), batch=5)(images())


def test_an_adapted_model_recovers() -> None:
    """A solver takes it as it takes any autoencoder, and its mode is restored."""
    opened = open_model(tiny().train(), input_range="-1,1", batch=2)
    assert len(Blind(limit=2)(opened, images())) == 5
    assert cast(nn.Module, opened.inner).training


@pytest.mark.gpu
def test_a_model_that_works_on_normalized_images_is_captured(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="recollect.accelerate")
    model = open_model(tiny().cuda(), mean=(0.1, 0.2, 0.3), std=(0.5, 0.5, 0.25))
    Blind(limit=2)(model, images().cuda())
    assert "without a CUDA graph" not in caplog.text


def test_the_module_behind_a_method_is_in_eval_mode() -> None:
    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.weight = nn.Dropout(0.5), nn.Parameter(torch.ones(1))

        def reconstruct(self, x: Tensor) -> Tensor:
            return self.drop(self.weight * x)

    model = open_model(Part().train().reconstruct, input_range="-1,1")
    assert probe_model(model, images()).mse == pytest.approx(0, abs=1e-12)
    assert len(list(model.parameters())) == 1
