"""Convolutions of doubled feature maps, on the maps as they were. What needs a CUDA device is run by make test-gpu."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from recollect import UNet
from recollect.accelerate import dispatch as own_products
from recollect.accelerate.recognise import doubles
from recollect.accelerate.tf32x3 import launch as products
from recollect.accelerate.tf32x3.launch import Call, double
from recollect.accelerate.tf32x3.packing import Way, pack
from recollect.engine.runtime import ready
from tests.accelerate.by_hand import convolve, on_a_cpu

gpu = pytest.mark.gpu
CHANNELS_LAST = torch.channels_last
SETTINGS: dict[str, Any] = {"size": None, "align_corners": None, "recompute_scale_factor": None, "antialias": False}


def maps(count: int, channels: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, channels, height, width, generator=generator).to(memory_format=CHANNELS_LAST)


@given(count=st.integers(1, 3), height=st.integers(1, 5), width=st.integers(1, 5), columns=st.integers(1, 4))
def test_taps_in_phases_are_those_on_doubled_images(count: int, height: int, width: int, columns: int) -> None:
    x, layer = maps(count, 20, height, width).double(), nn.Conv2d(20, columns, 3, padding=1)
    packed = pack(layer.weight.detach(), Way.DOUBLED)
    assert packed.upper.shape == (4 * columns, 2, 2, 32)
    for part in packed[:2]:
        assert not (part.view(torch.int32) & 0x1FFF).any()  # both in TF32
    whole = (packed.upper.double() + packed.rest.double()).permute(0, 3, 1, 2)
    assert not whole[:, 20:].any()
    layer = layer.double()
    assert layer.bias is not None
    exact = layer(functional.interpolate(x, scale_factor=2))
    assert torch.allclose(convolve(x, whole[:, :20], layer.bias, 1, (1, 1), 2), exact, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"scale_factor": 2, "mode": "nearest"}, True),
        ({"scale_factor": 2.0, "mode": "nearest-exact"}, True),
        ({"scale_factor": (2, 2), "mode": "nearest"}, True),
        ({"scale_factor": [2.0, 2.0], "mode": "nearest"}, True),
        ({"scale_factor": torch.tensor(2.0), "mode": "nearest"}, False),
        ({"scale_factor": torch.tensor([2.0, 2.0]), "mode": "nearest"}, False),
        ({"scale_factor": (2, 2, 2), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "nearest", "align_corners": False}, False),
        ({"scale_factor": 3, "mode": "nearest"}, False),
        ({"scale_factor": (2, 1), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "bilinear"}, False),
        ({"scale_factor": 2, "mode": "bilinear", "align_corners": True}, False),
        ({"size": (8, 8), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "nearest", "recompute_scale_factor": True}, False),
    ],
)
def test_what_doubles(settings: dict[str, Any], expected: bool) -> None:
    x = (maps(1, 3, 4, 4),)
    assert doubles(functional.interpolate, x, SETTINGS | settings) is expected
    assert not doubles(functional.grid_sample, x, SETTINGS | settings)
    assert not doubles(functional.interpolate, (*x, None), SETTINGS | settings)


Doubling = Callable[[Tensor], Tensor]
WAYS: list[Doubling] = [
    nn.Upsample(scale_factor=2),
    nn.Upsample(scale_factor=2, mode="nearest-exact"),
    nn.UpsamplingNearest2d(scale_factor=2),
    lambda x: functional.interpolate(x, scale_factor=2),
]


@pytest.mark.parametrize("twice", WAYS)
def test_a_convolution_right_after_runs_on_halves(twice: Doubling, calls: list[Call]) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with torch.no_grad():
        plain = functional.leaky_relu(layer(functional.interpolate(x, scale_factor=2)), 0.2)
        with on_a_cpu(layer):
            for _ in range(2):  # then with the activation along
                assert torch.allclose(functional.leaky_relu(layer(twice(x)), 0.2), plain, atol=1e-5)
            layer(x)
    assert [(call.scale, tuple(call.x.shape)) for call in calls] == [(2, (2, 3, 5, 20))] * 2 + [(1, (2, 3, 5, 20))]


def change(x: Tensor) -> Tensor:
    return x.add_(1)


@pytest.mark.parametrize(
    ("layer", "between"),
    [
        (nn.Conv2d(20, 30, 3, padding=1), torch.relu),
        (nn.Conv2d(20, 30, 3, padding=1), change),
        (nn.Conv2d(20, 30, 3, padding=1), torch.clone),
        (nn.Conv2d(20, 30, 3), lambda x: x),
        (nn.Conv2d(20, 30, 3, padding=2), lambda x: x),
        (nn.Conv2d(20, 30, 3, padding=1, stride=2), lambda x: x),
        (nn.Conv2d(20, 30, 1), lambda x: x),
        (nn.Conv2d(20, 30, 5, padding=2), lambda x: x),
    ],
)
def test_others_run_on_what_they_are_given(layer: nn.Conv2d, between: Doubling, calls: list[Call]) -> None:
    x = maps(2, 20, 3, 5)
    with torch.no_grad():
        plain = layer(between(functional.interpolate(x, scale_factor=2)))
        with on_a_cpu(layer):
            assert torch.allclose(layer(between(functional.interpolate(x, scale_factor=2))), plain, atol=1e-5)
    assert [call.scale for call in calls] == [1]


@pytest.mark.parametrize("which", ["halves", "doubled"])
def test_maps_that_have_changed_since_are_not_used(which: str, calls: list[Call]) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with torch.no_grad():
        with on_a_cpu(layer) as inside:
            doubled = functional.interpolate(x, scale_factor=2)
            noted = inside._latest
            (x if which == "halves" else doubled).zero_()
            inside._latest = noted  # as though no call had told of it
            ours = layer(doubled)
        assert torch.allclose(ours, layer(doubled), atol=1e-5)
    assert [call.scale for call in calls] == [1]


def test_halves_are_those_of_the_maps_that_are_convolved(calls: list[Call]) -> None:
    layer, x, other = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5), maps(3, 20, 6, 10)
    with torch.no_grad(), on_a_cpu(layer):
        functional.interpolate(x, scale_factor=2)
        ours = layer(other)
    assert torch.allclose(ours, layer(other), atol=1e-5)
    assert [call.scale for call in calls] == [1]


def test_a_call_without_arguments_after_a_doubling_is_let_through(calls: list[Call]) -> None:
    with torch.no_grad(), on_a_cpu(nn.Conv2d(20, 30, 3)) as inside:
        functional.interpolate(maps(2, 20, 3, 5), scale_factor=2)
        assert inside._latest is not None
        assert inside.__torch_function__(dict, []) == {}


def test_what_cannot_be_counted_doubled_runs_as_it_is_given(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    in_phases = 30 * 16 * 32  # values of the packed weight; more than any other
    with torch.no_grad(), on_a_cpu(layer):
        for largest, scale in ((in_phases, 1), (in_phases + 1, 2)):
            monkeypatch.setattr(products, "LARGEST", largest)
            layer(functional.interpolate(x, scale_factor=2))
            assert calls[-1].scale == scale


def test_maps_too_large_to_count_are_doubled_by_the_library(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    x = maps(2, 20, 3, 5)
    with torch.no_grad(), on_a_cpu(nn.Conv2d(20, 30, 3)) as inside:
        for largest, noted in ((4 * x.numel(), False), (4 * x.numel() + 4, True)):
            monkeypatch.setattr(own_products, "LARGEST", largest)
            functional.interpolate(x, scale_factor=2)
            assert (inside._latest is not None) is noted


def test_maps_that_lie_otherwise_or_are_differentiated_are_the_library_s(calls: list[Call]) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with on_a_cpu(layer) as inside:
        functional.interpolate(x, scale_factor=2)
        assert inside._latest is None
        with torch.no_grad():
            for other in (x.contiguous(), x.double(), x[:0], x[:, :, 0]):
                functional.interpolate(other, scale_factor=2)
                assert inside._latest is None
        with torch.inference_mode():  # there, writes are not counted
            layer(functional.interpolate(x, scale_factor=2))
    assert [call.scale for call in calls] == [1]


def test_a_unet_s_way_up_runs_on_halves(calls: list[Call]) -> None:
    f, x = UNet(widths=(16, 24, 32)), torch.rand(2, 3, 8, 8)
    with torch.no_grad(), on_a_cpu(*f.modules()):
        ours = f(x)
    assert [call.scale for call in calls] == [1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 1]
    assert [call.way for call in (calls[0], calls[-1])] == [Way.SPREAD, Way.GATHERED]
    assert torch.allclose(ours, f(x), atol=1e-5)


@gpu
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 5, 3, 4), (50, 512, 4, 4), (9, 128, 16, 16), (3, 7, 1, 2)])
def test_doubled_maps_are_the_library_s(shape: tuple[int, int, int, int]) -> None:
    x = maps(*shape).cuda()
    ours = double(x)
    assert torch.equal(ours, functional.interpolate(x, scale_factor=2))
    assert ours.is_contiguous(memory_format=CHANNELS_LAST)


@gpu
@pytest.mark.parametrize("count", [1, 9, 200])
@pytest.mark.parametrize(("channels", "columns"), [(20, 7), (64, 130), (512, 256), (48, 16)])
@pytest.mark.parametrize("size", [(1, 1), (4, 4), (3, 5)])
def test_convolutions_on_halves_are_exact(count: int, channels: int, columns: int, size: tuple[int, int]) -> None:
    x, layer = maps(count, channels, *size).cuda(), nn.Conv2d(channels, columns, 3, padding=1).cuda()
    f = nn.Sequential(nn.Upsample(scale_factor=2), layer, nn.Softplus())
    with torch.no_grad():
        exact = copy.deepcopy(f).double()(x.double())
        plain = f(x)
        with own_products.own_products(f.modules(), x.device) as inside:
            outs = [f(x), f(x)]
    assert list(inside._packed[id(layer.weight)]) == [Way.DOUBLED]
    for out in outs:
        assert (out - exact).norm() < 2 * (plain - exact).norm() + 1e-7 * exact.norm()
    assert torch.equal(*outs)


@gpu
def test_unets_run_on_halves_and_are_exact() -> None:
    f, x = UNet(activation="softplus").cuda().eval(), torch.rand(50, 3, 32, 32, device="cuda")
    with torch.no_grad(), ready(f, x, None) as network:
        exact, ours, plain = copy.deepcopy(f).double()(x.double()), network(x), f(x)
    assert sum(Way.DOUBLED in ways for ways in network._products._packed.values()) == 3
    assert (ours - exact).norm() < 2 * (plain - exact).norm()
