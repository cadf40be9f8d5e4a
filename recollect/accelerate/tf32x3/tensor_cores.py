"""Layers on a GPU's tensor cores: about as exact as PyTorch's float32, and faster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.backend import Activation, AdmmStep, LayerCall, LayerOutput, passes_self_test
from recollect.accelerate.tf32x3 import launch
from recollect.accelerate.tf32x3.compilation import compile_ahead
from recollect.accelerate.tf32x3.launch_plan import INT32_VALUES, fits_int32
from recollect.accelerate.tf32x3.lowering import (
    FEWEST_CHANNELS,
    MOST_TERMS,
    Lowering,
    can_fuse_upsampling,
    lowering_of,
)
from recollect.accelerate.tf32x3.packing import Packed, pack, packed_bytes
from recollect.accelerate.tf32x3.tiles import ROWS

MANY = 10_000  # processors that share a matrix multiplication by split-K; one alone does little or none
# Rows, columns and processors of each. Columns and channels are multiples of 16 as in most networks, whose layers then
# run in the variants that the self-test had compiled.
TILES = [(84, 16, 1), (84, 32, 1), (84, 48, MANY), (378, 48, 1), (378, 128, MANY)]
CHANNELS = 208  # of the self-test's linear layers: no whole number of chunks

log = logging.getLogger(__name__).info


class TensorCores:
    """Linear layers and convolutions in a Triton kernel: each float32 multiplication as three in TF32."""

    description = "float32 on tensor cores: three TF32 products, sums of 32 terms"
    fewest_images = 1
    tile_rows = ROWS
    fuses_activations = True

    def __init__(self, device: torch.device) -> None:
        self._device, self._processors = device, launch.processors_of(device)

    def takes(self, weight: Tensor) -> bool:
        return fills_chunks(weight)

    def packed_bytes(self, weight: Tensor) -> int:
        return packed_bytes(weight)

    def is_usable(self, weights: list[Tensor]) -> bool:
        return all(kernels_work(self._device, spatial) for spatial in {w.ndim == 4 for w in weights})

    def accepts(self, call: LayerCall) -> bool:
        return fits_int32(call)

    def fuse_upsampling(self, call: LayerCall, source: Tensor) -> LayerCall | None:
        return fuse_upsampling(call, source)

    def layout(self, call: LayerCall) -> Lowering:
        return lowering_of(call)

    def pack(self, weight: Tensor, layout: Lowering) -> Packed:
        return pack(weight, layout)

    def run(self, call: LayerCall, packed: Packed, activation: Activation | None) -> LayerOutput:
        return launch.run_layer(call, packed, self._processors, activation)

    def upsample(self, maps: Tensor) -> Tensor | None:
        return launch.upsample(maps)

    def max_pool(self, maps: Tensor) -> Tensor | None:
        return launch.max_pool(maps)

    def compile_ahead(self, run: Callable[[], Any]) -> None:
        compile_ahead(run, self._device)

    def admm_step(self, values: int) -> AdmmStep | None:
        return launch.admm_step if values < INT32_VALUES else None


def fills_chunks(weight: Tensor) -> bool:
    """Say whether a weight has enough channels, or enough at all its taps, for the chunks that tensor cores sum up."""
    return weight.shape[1] >= FEWEST_CHANNELS or FEWEST_CHANNELS <= weight.shape[1:].numel() <= MOST_TERMS


def fuse_upsampling(call: LayerCall, source: Tensor) -> LayerCall | None:
    """Rewrite a 3 x 3 convolution that keeps the size of upsampled maps, to read their source."""
    if not can_fuse_upsampling(call.weight.shape) or call.stride != 1 or call.padding != (1, 1):
        return None
    fused = call._replace(x=source.permute(0, 2, 3, 1), scale=2)
    return fused if fits_int32(fused) else None


@cache
def kernels_work(device: torch.device, spatial: bool) -> bool:
    """Say whether the device has tensor cores for TF32, a compiler is there, and the self-test passes."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        name = torch.cuda.get_device_name(device)
        log("Layers run in PyTorch's kernels: %s has no tensor cores for TF32.", name)
        return False

    def self_test() -> bool:  # fails without triton or a compiler, or with an unsuitable version of either
        calls = list(_convolutions(device) if spatial else _linear_layers(device))
        compile_ahead(lambda: _launch_all(calls, device), device)
        return all(_is_exact(call, processors) for call, processors in calls) and _admm_step_is_exact(device)

    return passes_self_test("the Triton kernels", self_test, log)


def _launch_all(calls: list[tuple[LayerCall, int]], device: torch.device) -> None:
    for call, processors in calls:
        launch.run_layer(call, pack(call.weight, lowering_of(call)), processors)
    _admm_step_is_exact(device)


def _linear_layers(device: torch.device) -> Iterator[tuple[LayerCall, int]]:
    """Draw one for each kind of tile."""
    for rows, columns, processors in TILES:
        x, weight, bias = _drawn(device, (rows, 1, 1, CHANNELS), (columns, CHANNELS), (columns,))
        yield LayerCall(x, weight, bias), processors


def _convolutions(device: torch.device) -> Iterator[tuple[LayerCall, int]]:
    """Draw one for each kind of tile, and one for each lowering."""
    tiles = [(rows, 48, columns, processors, 1) for rows, columns, processors in TILES]
    lowerings = [(84, 48, 48, 1, 2), (84, 3, 48, 1, 1), (84, 48, 3, 1, 1)]
    for rows, channels, columns, processors, scale in [*tiles, *lowerings]:
        x, weight, bias = _drawn(device, (rows // 42, 6, 7, channels), (columns, channels, 3, 3), (columns,))
        yield LayerCall(x, weight, bias, padding=(1, 1), scale=scale), processors


def _drawn(device: torch.device, *shapes: tuple[int, ...]) -> Iterator[Tensor]:
    generator = torch.Generator(device).manual_seed(0)
    return (torch.randn(shape, device=device, dtype=torch.float32, generator=generator) for shape in shapes)


def _is_exact(call: LayerCall, processors: int) -> bool:
    """Check that a layer has the errors of float32: plain TF32 would have ten times as large ones."""
    assert call.bias is not None
    out = launch.run_layer(call, pack(call.weight, lowering_of(call)), processors).values.permute(0, 3, 1, 2)
    images, taps = call.x.permute(0, 3, 1, 2).double(), call.weight.double()
    images = images.repeat_interleave(call.scale, 2).repeat_interleave(call.scale, 3)
    if taps.ndim == 2:
        taps = taps[:, :, None, None]
    exact = functional.conv2d(images, taps, call.bias.double(), padding=call.padding)
    return bool((out - exact).abs().max() < 1e-6 * exact.abs().max())


def _admm_step_is_exact(device: torch.device) -> bool:
    w, v, of_y, of_w = torch.rand(4, 112, device=device, generator=torch.Generator(device).manual_seed(0))
    exact = of_y.double() + (1 - 2 * of_w.double()) * v + of_w.double() * w
    launch.admm_step(w, v, of_y, of_w)
    return bool((w - exact).abs().max() < 1e-6)
