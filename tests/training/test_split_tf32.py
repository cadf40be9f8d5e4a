"""Split layers give what float32 gives, to rounding, and its gradients."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from recollect import FullyConnected, UNet
from recollect.devices.precision import float32_precision
from recollect.training.split_tf32 import SplitTF32


def test_networks_and_their_gradients_are_unchanged_to_rounding() -> None:
    x = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    for network in (UNet(widths=(4, 8), activation="prelu"), FullyConnected((3, 8, 8), layers=3, width=16)):
        plain, with_gradients = run(network, x)
        with SplitTF32():
            parts, with_gradients_too = run(network, x)
        assert torch.allclose(plain, parts, rtol=1e-5, atol=1e-7)
        for a, b in zip(with_gradients, with_gradients_too, strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-7)


class Channels(TorchDispatchMode):
    """Notes how many input channels the weight of each convolution has."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.convolution.default:
            self.seen.append(args[1].shape[1])
        return func(*args, **(kwargs or {}))


def test_convolutions_run_on_three_times_the_channels() -> None:
    network, x = UNet(widths=(4, 8)), torch.rand(1, 3, 8, 8)
    with torch.no_grad(), Channels() as plain:
        network(x)
    with torch.no_grad(), Channels() as split, SplitTF32():
        network(x)
    assert len(plain.seen) == 7
    assert split.seen == [3 * channels for channels in plain.seen]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["fc", "unet"])
def test_on_a_gpu_they_are_far_nearer_to_float64_than_tf32_is(kind: str) -> None:
    network = FullyConnected((3, 32, 32), layers=6, width=512) if kind == "fc" else UNet(widths=(64, 128, 256))
    network, x = network.cuda(), torch.rand(64, 3, 32, 32, generator=torch.Generator().manual_seed(0)).cuda()
    with torch.no_grad(), float32_precision("ieee"):
        exact = network.double()(x.double())
        network.float()
        with SplitTF32():
            parts = network(x)
        with float32_precision("tf32"):
            rounded = network(x)
    error, of_rounded = (float((out - exact).abs().max()) for out in (parts, rounded))
    assert error < 0.05 * of_rounded


def test_what_cannot_be_split_runs_as_it_is() -> None:
    x = torch.rand(1, 4, 8, 8)
    for layer in (nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, dilation=2), nn.Conv2d(4, 4, 3, bias=False)):
        with SplitTF32():
            inside = layer(x)
        assert torch.equal(inside, layer(x))


def run(network: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    out = network(x)
    return out, torch.autograd.grad((out - x).square().mean(), list(network.parameters()))
