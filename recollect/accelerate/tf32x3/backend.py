"""Products on a GPU's tensor cores: about as exact as the library's in float32, and faster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.tf32x3.launch import (
    Activation,
    Call,
    Outcome,
    are_right,
    double,
    halve,
    move,
    processors_of,
    run_kernel,
)
from recollect.accelerate.tf32x3.packing import FEWEST_CHANNELS, MOST_TERMS, Packed, Way, pack, packed_bytes

MANY = 10_000  # processors that share a product in parts; for one it is whole, or nearly
TILES = [(84, 12, 1), (84, 24, 1), (84, 48, MANY), (378, 48, 1), (378, 128, MANY)]  # rows, columns, processors of each

note = logging.getLogger(__name__).info


class TensorCores:
    """Linear layers and convolutions, by a kernel of our own."""

    in_words = "float32 on tensor cores: three TF32 products, sums of 32 terms"
    fewest_images = 1
    computes_activations = True

    def __init__(self, device: torch.device) -> None:
        self._device, self._processors = device, processors_of(device)

    def take(self, weight: Tensor) -> bool:
        return weight.shape[1] >= FEWEST_CHANNELS or FEWEST_CHANNELS <= weight.shape[1:].numel() <= MOST_TERMS

    def packed_bytes(self, weight: Tensor) -> int:
        return packed_bytes(weight)

    def work_for(self, weights: list[Tensor]) -> bool:
        return all(_kernel_works(self._device, spatial) for spatial in {w.ndim == 4 for w in weights})

    def pack(self, weight: Tensor, way: Way) -> Packed:
        return pack(weight, way)

    def run(self, call: Call, packed: Packed, activation: Activation | None) -> Outcome:
        return run_kernel(call, packed, self._processors, activation)

    def double(self, maps: Tensor) -> Tensor:
        return double(maps)

    def halve(self, maps: Tensor) -> Tensor | None:
        return halve(maps)


@cache
def _kernel_works(device: torch.device, spatial: bool) -> bool:
    """Whether the kernel can be had: there are tensor cores and a compiler, and first products are right."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        note("Products run in the library: %s has no tensor cores for TF32.", torch.cuda.get_device_name(device))
        return False

    def first_products() -> bool:  # fail without triton or a compiler, or with a version of either that cannot
        calls = _convolutions(device) if spatial else _linear_layers(device)
        return all(_is_right(call, processors) for call, processors in calls) and _moves(device)

    return are_right("the kernel", first_products, note)


def _linear_layers(device: torch.device) -> Iterator[tuple[Call, int]]:
    """One for each kind of tile."""
    for rows, columns, processors in TILES:
        x, weight, bias = _drawn(device, (rows, 1, 1, 200), (columns, 200), (columns,))
        yield Call(x, weight, bias), processors


def _convolutions(device: torch.device) -> Iterator[tuple[Call, int]]:
    """One for each kind of tile, and for each way."""
    tiles = [(rows, 48, columns, processors, 1) for rows, columns, processors in TILES]
    ways = [(84, 48, 48, 1, 2), (84, 3, 48, 1, 1), (84, 48, 3, 1, 1)]
    for rows, channels, columns, processors, scale in [*tiles, *ways]:
        x, weight, bias = _drawn(device, (rows // 42, 6, 7, channels), (columns, channels, 3, 3), (columns,))
        yield Call(x, weight, bias, padding=(1, 1), scale=scale), processors


def _drawn(device: torch.device, *shapes: tuple[int, ...]) -> Iterator[Tensor]:
    generator = torch.Generator(device).manual_seed(0)
    return (torch.randn(shape, device=device, dtype=torch.float32, generator=generator) for shape in shapes)


def _is_right(call: Call, processors: int) -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be TF32's, or a slip."""
    assert call.bias is not None
    out = run_kernel(call, pack(call.weight, call.way), processors).values.permute(0, 3, 1, 2)
    images, taps = call.x.permute(0, 3, 1, 2).double(), call.weight.double()
    images = images.repeat_interleave(call.scale, 2).repeat_interleave(call.scale, 3)
    taps = taps if taps.ndim == 4 else taps[:, :, None, None]
    exact = functional.conv2d(images, taps, call.bias.double(), padding=call.padding)
    return bool((out - exact).abs().max() < 1e-6 * exact.abs().max())


def _moves(device: torch.device) -> bool:
    """Whether a first step between two products is right."""
    w, v, of_y, of_w = torch.rand(4, 100, device=device, generator=torch.Generator(device).manual_seed(0))
    exact = of_y.double() + (1 - 2 * of_w.double()) * v + of_w.double() * w
    move(w, v, of_y, of_w)
    return bool((w - exact).abs().max() < 1e-6)
