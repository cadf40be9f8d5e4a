"""Plan the launch of a layer's matrix multiplication: its grid of tiles, split-K, and the kernel's arguments."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch

from recollect.accelerate.backend import LayerCall
from recollect.accelerate.tf32x3.lowering import CHUNK, Lowering, choose_lowering, lowering_of, packed_shape, phases
from recollect.accelerate.tf32x3.tiles import SMALL, Tile, tiling

INT32_VALUES = 2**31  # the kernels' offsets are 32-bit integers
MOST_COLUMN_TILES = 65_535  # CUDA's limit on the second dimension of a grid


class LaunchPlan(NamedTuple):
    """The tiles of a matrix multiplication, and the numbers that the kernel is given."""

    tile: Tile
    splits: int  # of the sum over channels and taps (split-K)
    grid: tuple[int, int, int]
    numbers: tuple[int, ...]
    is_flat: bool  # a row of x makes a row of the output: there are no taps and no pixels to locate


def fits_int32(call: LayerCall) -> bool:
    """Say whether a launch can address every tensor of this call, and its grid is within CUDA's limits."""
    if min(call.output_shape) < 1:
        return False
    return largest_tensor(call) < INT32_VALUES and column_tiles(call) <= MOST_COLUMN_TILES


def largest_tensor(call: LayerCall) -> int:
    """Count the values of the largest tensor that the kernels address: input, output, weight, or an intermediate."""
    return _largest_tensor(call.output_shape, call.x.shape, call.weight.shape, lowering_of(call))


@lru_cache(4096)
def _largest_tensor(output: tuple[int, ...], x: torch.Size, weight: torch.Size, lowering: Lowering) -> int:
    columns, *_, channels = packed = packed_shape(weight, lowering)
    intermediate = 0
    if lowering is Lowering.IM2COL:
        intermediate = math.prod(output[:3]) * channels
    if lowering is Lowering.COL2IM:
        intermediate = math.prod(x[:3]) * columns
    return max(math.prod(x), math.prod(output), math.prod(packed), intermediate)


def column_tiles(call: LayerCall) -> int:
    """Count the tiles side by side, of all phases."""
    return -(-call.output_shape[3] // SMALL.columns) * phases(call.scale)


def plan_launch(call: LayerCall, processors: int) -> LaunchPlan:
    return _plan_launch(
        call.output_shape, call.x.shape, call.weight.shape, call.stride, call.padding, call.scale, processors
    )


@lru_cache(4096)
def _plan_launch(
    output: tuple[int, int, int, int], x: torch.Size, weight: torch.Size, stride: int, padding: tuple[int, int],
    scale: int, processors: int,
) -> LaunchPlan:  # fmt: skip
    count, down, across, columns = output
    _, height, width, channels = x
    _, taps_down, taps_across, padded_channels = packed_shape(weight, choose_lowering(weight, stride, scale))
    rows, chunks = count * down * across // phases(scale), taps_down * taps_across * padded_channels // CHUNK
    tile, chunks_each, splits = tiling(rows, columns, chunks, processors, phases(scale))
    grid = (-(-rows // tile.rows), -(-columns // tile.columns) * phases(scale), splits)
    numbers = (
        rows, columns, channels, height, width, down // scale, across // scale, taps_across, stride, *padding, scale,
        chunks, chunks_each,
    )  # fmt: skip
    is_flat = height == width == down == across == taps_down == taps_across == 1
    return LaunchPlan(tile, splits, grid, numbers, is_flat)
