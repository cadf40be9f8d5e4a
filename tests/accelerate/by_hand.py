"""A backend for tests: what tensor cores compute, in float64 on any device, with notes of what it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect.accelerate.backend import Activation, AdmmStep, LayerCall, LayerOutput
from recollect.accelerate.dispatch import KernelDispatch, weights_among
from recollect.accelerate.tf32x3.lowering import Lowering, lowering_of
from recollect.accelerate.tf32x3.packing import Packed
from recollect.accelerate.tf32x3.tensor_cores import TensorCores

CPU = torch.device("cpu")


class ByHand(TensorCores):
    """Takes and packs what tensor cores take and pack, and launches nothing."""

    description = "by hand"

    def __init__(self) -> None:
        self.calls: list[LayerCall] = []
        self.fused: list[Activation | None] = []  # activations, one for each call
        self.packed: list[Lowering] = []
        self.pooled: list[tuple[int, ...]] = []  # shapes
        self.upsampled: list[tuple[int, ...]] = []
        self.rehearsals: list[Callable[[], Any]] = []

    def dispatch(self, *modules: nn.Module) -> KernelDispatch:
        return KernelDispatch(weights_among(modules, CPU, self), CPU, self)

    @property
    def scales(self) -> list[int]:
        return [call.scale for call in self.calls]

    def is_usable(self, weights: list[Tensor]) -> bool:
        return True

    def pack(self, weight: Tensor, layout: Lowering) -> Packed:
        self.packed.append(layout)
        return super().pack(weight, layout)

    def run(self, call: LayerCall, packed: Packed, activation: Activation | None) -> LayerOutput:
        self.calls.append(call)
        self.fused.append(activation)
        return layer_output(call, packed, activation)

    def compile_ahead(self, run: Callable[[], Any]) -> None:
        self.rehearsals.append(run)

    def upsample(self, maps: Tensor) -> Tensor | None:
        self.upsampled.append(tuple(maps.shape))
        return functional.interpolate(maps, scale_factor=2)

    def max_pool(self, maps: Tensor) -> Tensor | None:
        self.pooled.append(tuple(maps.shape))
        return functional.max_pool2d(maps, 2)

    def admm_step(self, values: int) -> AdmmStep | None:
        return admm_step


def admm_step(w: Tensor, v: Tensor, of_y: Tensor, of_w: Tensor) -> None:
    w.copy_(of_y + (1 - 2 * of_w) * v + of_w * w)


def layer_output(call: LayerCall, packed: Packed, activation: Activation | None) -> LayerOutput:
    x, _, bias, stride, padding, scale = call
    assert bias is not None
    for values in (bias, *packed):
        assert values.is_contiguous()
        assert not values.is_neg()
    taps = unpacked(packed, call.weight.shape, lowering_of(call))
    out = convolve(x.permute(0, 3, 1, 2).double(), taps, bias.double(), stride, padding, scale)
    assert tuple(out.permute(0, 2, 3, 1).shape) == call.output_shape
    values = out.permute(0, 2, 3, 1).float().contiguous()
    if activation is None:
        return LayerOutput(values, None)
    if activation.name == "leaky_relu":
        return LayerOutput(values, torch.where(values > 0, values, values * activation.slope))
    return LayerOutput(values, torch.where(values > 20, values, values.exp().log1p()))


def unpacked(packed: Packed, weight: torch.Size, lowering: Lowering) -> Tensor:
    """Columns x channels x taps down x taps across; for upsampled images the columns of each phase."""
    columns, channels, down, across = (*weight, 1, 1)[:4]
    values = packed.upper.double() + packed.rest.double()
    if lowering is Lowering.IM2COL:
        values = values[:, 0, 0, : down * across * channels].view(columns, down, across, channels)
    if lowering is Lowering.COL2IM:
        values = values[: down * across * columns].view(down, across, columns, -1).permute(2, 0, 1, 3)
    return values.permute(0, 3, 1, 2)[:, :channels]


def convolve(x: Tensor, taps: Tensor, bias: Tensor, stride: int, padding: tuple[int, int], scale: int) -> Tensor:
    """Convolve; of upsampled images by four 2 x 2 convolutions, each for every second pixel down and across."""
    if scale == 1:
        return functional.conv2d(x, taps, bias, stride, padding)
    count, _, height, width = x.shape
    out = x.new_empty(count, len(bias), 2 * height, 2 * width)
    for phase, own in enumerate(taps.chunk(4)):
        down, across = phase // 2, phase % 2
        padded = functional.pad(x, (1 - across, across, 1 - down, down))
        out[:, :, down::2, across::2] = functional.conv2d(padded, own, bias)
    return out
