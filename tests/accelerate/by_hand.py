"""What our kernels compute, for any device."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect.accelerate.dispatch import OwnProducts, weights_among
from recollect.accelerate.tf32x3.backend import TensorCores
from recollect.accelerate.tf32x3.launch import Activation, Call, Outcome
from recollect.accelerate.tf32x3.packing import Packed, Way, pack, packed_bytes

CPU = torch.device("cpu")


class ByHand:
    """What tensor cores take, without any."""

    in_words = "by hand"
    fewest_images = 1
    computes_activations = True
    calls: ClassVar[list[Call]] = []

    def take(self, weight: Tensor) -> bool:
        return TensorCores.take(self, weight)  # type: ignore[arg-type]

    def packed_bytes(self, weight: Tensor) -> int:
        return packed_bytes(weight)

    def work_for(self, _weights: list[Tensor]) -> bool:
        return True

    def pack(self, weight: Tensor, way: Way) -> Packed:
        return pack(weight, way)

    def run(self, call: Call, packed: Packed, activation: Activation | None) -> Outcome:
        self.calls.append(call)
        return product(call, packed, activation)

    def double(self, maps: Tensor) -> Tensor:
        return functional.interpolate(maps, scale_factor=2)

    def halve(self, maps: Tensor) -> Tensor:
        return functional.max_pool2d(maps, 2)


def product(call: Call, layer: Packed, activation: Activation | None) -> Outcome:
    x, _, bias, stride, padding, scale = call
    assert bias is not None
    for values in (bias, layer.upper, layer.rest):  # lie one after another
        assert values.is_contiguous()
        assert not values.is_neg()
    whole = unpacked(layer, call.weight.shape, call.way)
    out = convolve(x.permute(0, 3, 1, 2).double(), whole, bias.double(), stride, padding, scale)
    assert tuple(out.permute(0, 2, 3, 1).shape) == call.outcome
    values = out.permute(0, 2, 3, 1).float().contiguous()
    if activation is None:
        return Outcome(values, None)
    if activation.name == "leaky_relu":
        return Outcome(values, torch.where(values > 0, values, values * activation.slope))
    return Outcome(values, torch.where(values > 20, values, values.exp().log1p()))


def unpacked(layer: Packed, weight: torch.Size, way: Way) -> Tensor:
    """Columns x channels x taps down x taps across; for doubled images the columns of each phase."""
    columns, channels, down, across = (*weight, 1, 1)[:4]
    whole = layer.upper.double() + layer.rest.double()
    if way is Way.SPREAD:
        whole = whole[:, 0, 0, : down * across * channels].view(columns, down, across, channels)
    if way is Way.GATHERED:
        whole = whole[: down * across * columns].view(down, across, columns, -1).permute(2, 0, 1, 3)
    return whole.permute(0, 3, 1, 2)[:, :channels]


def convolve(x: Tensor, taps: Tensor, bias: Tensor, stride: int, padding: tuple[int, int], scale: int) -> Tensor:
    """Of doubled images by four convolutions, each two by two: every second pixel of the outcome, down and across."""
    if scale == 1:
        return functional.conv2d(x, taps, bias, stride, padding)
    count, _, height, width = x.shape
    out = x.new_empty(count, len(bias), 2 * height, 2 * width)
    for phase, own in enumerate(taps.chunk(4)):
        down, across = phase // 2, phase % 2
        seen = functional.pad(x, (1 - across, across, 1 - down, down))
        out[:, :, down::2, across::2] = functional.conv2d(seen, own, bias)
    return out


def on_a_cpu(*modules: nn.Module) -> OwnProducts:
    return OwnProducts(weights_among(modules, CPU, ByHand()), CPU, ByHand())
