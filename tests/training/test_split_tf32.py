"""Split products: what float32 gives, to rounding, and with its gradients."""

import pytest
import torch
from torch import nn

from recollect import FullyConnected, UNet
from recollect.devices.precision import float32_precision
from recollect.training.split_tf32 import SplitConvolution, SplitProducts, split


def test_a_number_is_the_sum_of_its_parts_and_the_first_fits_tf32() -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 1e3
    high, low = split(x)
    assert torch.equal(high + low, x)
    assert not (high.view(torch.int32) & 0x1FFF).any()
    assert float((low / x).abs().max()) < 2**-10


def test_networks_and_their_gradients_are_unchanged_to_rounding() -> None:
    x = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    for network in (UNet(widths=(4, 8), activation="prelu"), FullyConnected((3, 8, 8), layers=3, width=16)):
        plain, with_gradients = _run(network, x)
        with SplitProducts():
            parts, with_gradients_too = _run(network, x)
        assert torch.allclose(plain, parts, rtol=1e-5, atol=1e-7)
        for a, b in zip(with_gradients, with_gradients_too, strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-7)


def test_convolutions_are_really_split(monkeypatch) -> None:
    calls = []
    forward = SplitConvolution.forward
    monkeypatch.setattr(SplitConvolution, "forward", staticmethod(lambda *a: (calls.append(1), forward(*a))[1]))
    with SplitProducts():
        UNet(widths=(4, 8))(torch.rand(1, 3, 8, 8))
    assert len(calls) == 7


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["fc", "unet"])
def test_on_a_gpu_they_are_far_nearer_to_float64_than_tf32_is(kind: str) -> None:
    network = FullyConnected((3, 32, 32), layers=6, width=512) if kind == "fc" else UNet(widths=(64, 128, 256))
    network, x = network.cuda(), torch.rand(64, 3, 32, 32, generator=torch.Generator().manual_seed(0)).cuda()
    with torch.no_grad(), float32_precision("ieee"):
        exact = network.double()(x.double())
        network.float()
        with SplitProducts():
            parts = network(x)
        with float32_precision("tf32"):
            rounded = network(x)
    error, of_rounded = (float((out - exact).abs().max()) for out in (parts, rounded))
    assert error < 0.05 * of_rounded


def test_what_cannot_be_split_runs_as_it_is() -> None:
    x = torch.rand(1, 4, 8, 8)
    for layer in (nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, dilation=2), nn.Conv2d(4, 4, 3, bias=False)):
        with SplitProducts():
            inside = layer(x)
        assert torch.equal(inside, layer(x))


def _run(network: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    out = network(x)
    return out, torch.autograd.grad((out - x).square().mean(), list(network.parameters()))
