"""Upsampling and max-pooling of feature maps, and convolutions right after upsampling that read its source."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect import UNet
from recollect.accelerate.backend import LayerCall
from recollect.accelerate.tf32x3.lowering import Lowering, lowering_of
from tests.accelerate.by_hand import ByHand

CHANNELS_LAST = torch.channels_last
X = torch.rand(2, 20, 6, 8)


def maps(count: int, channels: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, channels, height, width, generator=generator).to(memory_format=CHANNELS_LAST)


Resize = Callable[[Tensor], Tensor]
UPSAMPLINGS: list[Resize] = [
    nn.Upsample(scale_factor=2),
    nn.Upsample(scale_factor=2, mode="nearest-exact"),
    nn.UpsamplingNearest2d(scale_factor=2),
    lambda x: functional.interpolate(x, scale_factor=2),
]


@pytest.mark.parametrize("upsample", UPSAMPLINGS)
def test_a_convolution_right_after_upsampling_reads_its_source(upsample: Resize, by_hand: ByHand) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with torch.no_grad():
        plain = functional.leaky_relu(layer(functional.interpolate(x, scale_factor=2)), 0.2)
        with by_hand.dispatch(layer):
            for _ in range(2):  # the second time with the activation fused
                assert torch.allclose(functional.leaky_relu(layer(upsample(x)), 0.2), plain, atol=1e-5)
            layer(x)
    assert [(call.scale, tuple(call.x.shape)) for call in by_hand.calls] == [(2, (2, 3, 5, 20))] * 2 + [
        (1, (2, 3, 5, 20))
    ]


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
def test_other_convolutions_read_the_upsampled_maps(layer: nn.Conv2d, between: Resize, by_hand: ByHand) -> None:
    x = maps(2, 20, 3, 5)
    with torch.no_grad():
        plain = layer(between(functional.interpolate(x, scale_factor=2)))
        with by_hand.dispatch(layer):
            assert torch.allclose(layer(between(functional.interpolate(x, scale_factor=2))), plain, atol=1e-5)
    assert by_hand.scales == [1]


@pytest.mark.parametrize("which", ["source", "upsampled"])
def test_a_source_is_not_read_once_it_or_the_upsampled_maps_have_changed(which: str, by_hand: ByHand) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with torch.no_grad():
        with by_hand.dispatch(layer):
            upsampled = functional.interpolate(x, scale_factor=2)
            with torch._C.DisableTorchFunction():  # as compiled code does
                (x if which == "source" else upsampled).zero_()
            ours = layer(upsampled)
        assert torch.allclose(ours, layer(upsampled), atol=1e-5)
    assert by_hand.scales == [1]


def test_the_source_of_other_maps_is_not_read(by_hand: ByHand) -> None:
    layer, x, other = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5), maps(3, 20, 6, 10)
    with torch.no_grad(), by_hand.dispatch(layer):
        functional.interpolate(x, scale_factor=2)
        ours = layer(other)
    assert torch.allclose(ours, layer(other), atol=1e-5)
    assert by_hand.scales == [1]


def test_a_call_without_arguments_after_upsampling_is_let_through(by_hand: ByHand) -> None:
    with torch.no_grad(), by_hand.dispatch(nn.Conv2d(20, 30, 3)) as inside:
        functional.interpolate(maps(2, 20, 3, 5), scale_factor=2)
        assert by_hand.upsampled
        assert inside.__torch_function__(dict, []) == {}


class Unfused(ByHand):
    def fuse_upsampling(self, _call: LayerCall, _source: Tensor) -> None:
        return None


class Unresized(ByHand):
    def upsample(self, _maps: Tensor) -> None:
        return None

    def max_pool(self, _maps: Tensor) -> None:
        return None


@pytest.mark.parametrize("backend", [Unfused(), Unresized()])
def test_what_a_backend_does_not_fuse_or_resize_runs_as_it_is(backend: ByHand) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 4, 6)
    f = nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2), layer)
    with torch.no_grad():
        plain = f(x)
        with backend.dispatch(layer):
            assert torch.allclose(f(x), plain, atol=1e-5)
    assert backend.scales == [1]


def test_maps_in_another_order_or_with_gradients_are_left_to_pytorch(by_hand: ByHand) -> None:
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with by_hand.dispatch(layer):
        functional.interpolate(x, scale_factor=2)
        with torch.no_grad():
            for other in (x.contiguous(), x.double(), x[:0], x[:, :, 0]):
                functional.interpolate(other, scale_factor=2)
    assert not by_hand.upsampled


def test_in_inference_mode_a_source_is_not_read(by_hand: ByHand) -> None:
    """There, writes are not counted."""
    layer, x = nn.Conv2d(20, 30, 3, padding=1), maps(2, 20, 3, 5)
    with torch.inference_mode(), by_hand.dispatch(layer):
        layer(functional.interpolate(x, scale_factor=2))
    assert by_hand.upsampled
    assert by_hand.scales == [1]


def test_the_decoder_of_a_unet_reads_maps_before_upsampling(by_hand: ByHand) -> None:
    f, x = UNet(widths=(16, 24, 32)), torch.rand(2, 3, 8, 8)
    with torch.no_grad(), by_hand.dispatch(*f.modules()):
        ours = f(x)
    assert by_hand.scales == [1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 1]
    assert [lowering_of(call) for call in (by_hand.calls[0], by_hand.calls[-1])] == [Lowering.IM2COL, Lowering.COL2IM]
    assert torch.allclose(ours, f(x), atol=1e-5)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), lambda x: functional.max_pool2d(x, 2)])
def test_channels_last_maps_are_max_pooled_by_the_backend(pool: Any, by_hand: ByHand) -> None:
    layer = nn.Conv2d(20, 24, 3, padding=1)
    with torch.no_grad():
        plain = pool(layer(X))
        with by_hand.dispatch(layer):
            assert torch.allclose(pool(layer(X)), plain, atol=1e-5)
            pool(X)
    assert by_hand.pooled == [(2, 24, 6, 8)]
    assert len(by_hand.calls) == 1


def test_maps_whose_negation_is_pending_are_left_to_pytorch(by_hand: ByHand) -> None:
    maps = torch._neg_view(X.to(memory_format=torch.channels_last))
    with torch.no_grad(), by_hand.dispatch(nn.Conv2d(20, 24, 3)):
        assert torch.equal(functional.max_pool2d(maps, 2), functional.max_pool2d(-X, 2))
    assert not by_hand.pooled


def test_gradients_are_left_to_pytorch(by_hand: ByHand) -> None:
    maps = X.to(memory_format=torch.channels_last).requires_grad_()
    with by_hand.dispatch(nn.Conv2d(20, 24, 3)):
        functional.max_pool2d(maps, 2).sum().backward()
    assert maps.grad is not None
    assert not by_hand.pooled
