"""Launching our kernels: a layer applied to images as one product on a GPU's tensor cores, also to images that are
doubled first, and ADMM's step between two applications.

How weights lie there, and what the kernels are told. Only how sums are taken differs from the library, and with it
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recollect.recovery.tiles import SMALL, Tile, tiling

CHUNK = 32  # terms that tensor cores add up, before float32 does
BLOCK, TOGETHER = 512, 4  # values that are added up by one of the kernel's programs, parts that it reads at a time
MOVED = 1024  # values of a step, activated or doubled, for one program
FEW_REGISTERS = {"leaky_relu"}  # what a product can compute along; with others a processor has room for fewer tiles
LARGEST = 2**31  # values that the kernel cannot count any more
MOST_TILES = 65_535  # side by side
DOUBLED_TAPS = (3, 3)  # of convolutions that run on images as they were before they were doubled


class Call(NamedTuple):
    """A layer that is applied to x: images x height x width x channels."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    scale: int = 1  # 2 where every pixel of x is doubled first, down and across

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """The shape of what comes out: images x down x across x columns."""
        return _outcome(self.x.shape, self.weight.shape, self.stride, self.padding, self.scale)

    @property
    def can_be_counted(self) -> bool:
        values, tiles = _most(self.outcome, self.x.shape, self.weight.shape, self.scale)
        return min(self.outcome) > 0 and values < LARGEST and tiles <= MOST_TILES

    def plan(self, processors: int) -> Plan:
        return _plan(self.outcome, self.x.shape, self.weight.shape, self.stride, self.padding, self.scale, processors)


@lru_cache(4096)
def _outcome(
    x: torch.Size, weight: torch.Size, stride: int, padding: tuple[int, int], scale: int
) -> tuple[int, int, int, int]:
    taps_down, taps_across = weight[2:] or (1, 1)
    down = (x[1] * scale + 2 * padding[0] - taps_down) // stride + 1
    across = (x[2] * scale + 2 * padding[1] - taps_across) // stride + 1
    return x[0], down, across, weight[0]


class Packed(NamedTuple):
    """A weight as the kernel reads it: columns x taps down x taps across x channels, these in whole chunks. For doubled
    images the columns of each phase."""

    upper: Tensor  # in TF32, and so is the rest
    rest: Tensor


class Plan(NamedTuple):
    """How a product is cut up, and what the kernel is told of it."""

    tile: Tile
    parts: int
    grid: tuple[int, int, int]
    numbers: tuple[int, ...]
    is_flat: bool


class Activation(NamedTuple):
    """What may follow a layer and can be computed along with it."""

    name: str  # as the kernel knows it
    slope: float = 0.0


class Outcome(NamedTuple):
    """What comes out of a layer, and of an activation after it where that was asked for."""

    values: Tensor
    activated: Tensor | None


def filled_size(weight: torch.Size, scale: int = 1) -> int:
    """Values of a weight whose channels are filled up to whole chunks; for doubled images with four times four taps."""
    columns, channels, *taps = weight
    return columns * (16 if scale == 2 else math.prod(taps)) * -(-channels // CHUNK) * CHUNK


def packed_bytes(weight: Tensor) -> int:
    """The memory that a weight takes at most: in two parts, and once more for doubled images if it may meet such."""
    scales = (1, 2) if weight.shape[2:] == DOUBLED_TAPS else (1,)
    return 2 * weight.element_size() * sum(filled_size(weight.shape, scale) for scale in scales)


def state_of(weight: Tensor) -> tuple[int, int]:
    """Its place in memory and its version, which tell whether it is still the same; in inference mode none is kept."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def pack(weight: Tensor, scale: int = 1) -> Packed:
    taps = weight if weight.ndim == 4 else weight[:, :, None, None]
    if scale > 1:
        taps = in_phases(taps)
    values = as_it_lies(taps.permute(0, 2, 3, 1))
    if missing := -weight.shape[1] % CHUNK:
        values = functional.pad(values, (0, missing))
    upper = in_tf32(values.float())
    rest = in_tf32((values - upper).float())
    return Packed(upper, rest.add_(values, alpha=0))  # what is no number stays so


def in_phases(taps: Tensor) -> Tensor:
    """Three by three taps on doubled images as two by two on the images themselves, for each of four phases: the upper
    of two equal pixels has one tap on the pixel above and two on itself, the lower two on itself and one below."""
    down = _halved(taps.double(), 2)
    across = _halved(down, 4)  # both phases down x both across x columns x channels x two taps down x two across
    return across.transpose(0, 1).flatten(0, 2)


def _halved(taps: Tensor, along: int) -> Tensor:
    """Both phases x taps, with two for three along this dimension."""
    one, two, three = taps.unbind(along)
    return torch.stack([torch.stack([one, two + three], along), torch.stack([one + two, three], along)])


def are_right(kernels: str, first_products: Callable[[], bool], note: Callable[..., None]) -> bool:
    """Whether kernels of this name can be had, and first products by them are right; else a word says why not."""
    try:
        right = first_products()
    except torch.cuda.OutOfMemoryError:
        raise  # that is not the kernels', and may be over the next time
    except Exception as error:  # recovery needs none of them
        note("Products run in the library: %s cannot be had (%s: %s).", kernels, type(error).__name__, error)
        return False
    if not right:
        note("Products run in the library: %s's first products are wrong.", kernels)
    return right


def as_it_lies(values: Tensor) -> Tensor:
    """As they are, one after another: a negation may be pending."""
    return values.resolve_neg().contiguous()


def in_tf32(x: Tensor) -> Tensor:
    """Numbers rounded to eleven bits, the nearest: what is left has twelve."""
    return (x.view(torch.int32) + 0x1000).bitwise_and_(-0x2000).view(torch.float32)


@lru_cache(4096)
def _most(outcome: tuple[int, ...], x: torch.Size, weight: torch.Size, scale: int) -> tuple[int, int]:
    """Values in one place, and tiles side by side."""
    values = max(math.prod(x), math.prod(outcome), filled_size(weight, scale))
    return values, -(-outcome[3] // SMALL.columns) * phases(scale)


@lru_cache(4096)
def _plan(
    outcome: tuple[int, int, int, int], x: torch.Size, weight: torch.Size, stride: int, padding: tuple[int, int],
    scale: int, processors: int,
) -> Plan:  # fmt: skip
    count, down, across, columns = outcome
    _, height, width, channels = x
    taps_down, taps_across = (2, 2) if scale == 2 else weight[2:] or (1, 1)
    rows, chunks = count * down * across // phases(scale), taps_down * taps_across * -(-channels // CHUNK)
    tile, each, parts = tiling(rows, columns, chunks, processors, phases(scale))
    grid = (-(-rows // tile.rows), -(-columns // tile.columns) * phases(scale), parts)
    numbers = (
        rows, columns, channels, height, width, down // scale, across // scale, taps_across, stride, *padding, scale,
        chunks, each,
    )  # fmt: skip
    is_flat = height == width == down == across == taps_down == taps_across == 1  # a row of x makes one of the outcome
    return Plan(tile, parts, grid, numbers, is_flat)


def phases(scale: int) -> int:
    """Kinds of pixels of the outcome: the four that a doubled pixel becomes have different taps."""
    return scale**2


def processors_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def run_kernel(call: Call, layer: Packed, processors: int, activation: Activation | None = None) -> Outcome:
    """What comes out of a call whose values lie one after another, and of an activation after it."""
    from recollect.recovery.kernels import activate_all, add_up, product

    x, outcome, (tile, parts, grid, numbers, is_flat) = call.x, call.outcome, call.plan(processors)
    out = x.new_empty(outcome)
    sums = out if parts == 1 else x.new_empty(parts, *outcome)
    activated = x.new_empty(outcome) if activation else None
    name, slope = activation or (None, 0.0)
    along = (sums if activated is None else activated, slope)
    at_once = name if parts == 1 and name in FEW_REGISTERS else None
    with _current(x.device):
        product[grid](
            x, layer.upper, layer.rest, call.bias, sums, *along, *numbers, ROWS=tile.rows, COLUMNS=tile.columns,
            CHUNK=CHUNK, FLAT=is_flat, ACTIVATION=at_once, num_stages=3, num_warps=tile.warps,
        )  # fmt: skip
        if parts > 1:
            add_up[(-(-out.numel() // BLOCK),)](
                sums, out, *along, out.numel(), parts, BLOCK=BLOCK, TOGETHER=TOGETHER, ACTIVATION=name
            )
        elif name != at_once:
            activate_all[(-(-out.numel() // MOVED),)](out, *along, out.numel(), BLOCK=MOVED, ACTIVATION=name)
    return Outcome(out, activated)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Inside, kernels are launched on this device."""
    return nullcontext() if torch.cuda.current_device() == device.index else torch.cuda.device(device)


def double(x: Tensor) -> Tensor:
    """Every pixel of feature maps twice, down and across; they lie channels last, before and after."""
    from recollect.recovery.kernels import twice

    count, channels, height, width = x.shape
    out = x.new_empty(count, 2 * height, 2 * width, channels)
    with _current(x.device):
        twice[(-(-out.numel() // MOVED),)](x, out, out.numel(), width, channels, BLOCK=MOVED)
    return out.permute(0, 3, 1, 2)


def move(w: Tensor, v: Tensor, of_y: Tensor, of_w: Tensor) -> None:
    """w <- of_y + (1 - 2 of_w) v + of_w w, in one pass; all but v lie one value after another."""
    from recollect.recovery.kernels import next_point

    with _current(w.device):
        next_point[(-(-w.numel() // MOVED),)](w, as_it_lies(v), of_y, of_w, w.numel(), BLOCK=MOVED)
