"""Launching our kernels: a layer applied to images by products on a GPU's tensor cores, images doubled and halved, and
ADMM's step between two applications. Only how sums are taken differs from the library, and with it rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recollect.accelerate.tf32x3.packing import CHUNK, Packed, Way, as_it_lies, packed_shape, way_of
from recollect.accelerate.tf32x3.tiles import SMALL, Tile, tiling

BLOCK, TOGETHER = 512, 4  # values that are added up by one of the kernel's programs, parts that it reads at a time
MOVED, GATHERED_BLOCK = 1024, 256  # values that one program moves or changes, and that it adds up of gathered ones
FEW_REGISTERS = {"leaky_relu"}  # what a product can compute along; with others a processor has room for fewer tiles
LARGEST = 2**31  # values that the kernel cannot count any more
MOST_TILES = 65_535  # side by side


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
    def way(self) -> Way:
        return way_of(self.weight.shape, self.stride, self.scale)

    @property
    def can_be_counted(self) -> bool:
        values, tiles = _most_values_and_tiles(self.outcome, self.x.shape, self.weight.shape, self.way)
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


@lru_cache(4096)
def _most_values_and_tiles(outcome: tuple[int, ...], x: torch.Size, weight: torch.Size, way: Way) -> tuple[int, int]:
    """Values in one place, and tiles side by side."""
    columns, *_, channels = packed = packed_shape(weight, way)
    between = {Way.SPREAD: math.prod(outcome[:3]) * channels, Way.GATHERED: math.prod(x[:3]) * columns}.get(way, 0)
    tiles = -(-outcome[3] // SMALL.columns) * (phases(2) if way is Way.DOUBLED else 1)
    return max(math.prod(x), math.prod(outcome), math.prod(packed), between), tiles


@lru_cache(4096)
def _plan(
    outcome: tuple[int, int, int, int], x: torch.Size, weight: torch.Size, stride: int, padding: tuple[int, int],
    scale: int, processors: int,
) -> Plan:  # fmt: skip
    count, down, across, columns = outcome
    _, height, width, channels = x
    _, taps_down, taps_across, filled = packed_shape(weight, way_of(weight, stride, scale))
    rows, chunks = count * down * across // phases(scale), taps_down * taps_across * filled // CHUNK
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
    """What comes out of a call, and of an activation after it. To spread or to gather is a linear layer's product with
    the packed weight in place of its own, of which the shape alone is looked at."""
    if call.way is Way.SPREAD:
        pixels = Call(spread(call), layer.upper[:, 0, 0], call.bias)
        values, activated = multiply(pixels, layer, processors, activation)
        return Outcome(values.view(call.outcome), None if activated is None else activated.view(call.outcome))
    call = call._replace(x=as_it_lies(call.x))
    if call.way is Way.GATHERED:
        pixels = Call(call.x.view(-1, 1, 1, call.x.shape[3]), layer.upper[:, 0, 0], None)
        return gather(call, multiply(pixels, layer, processors).values, activation)
    return multiply(call, layer, processors, activation)


def multiply(call: Call, layer: Packed, processors: int, activation: Activation | None = None) -> Outcome:
    """One product. Values lie one after another."""
    from recollect.accelerate.tf32x3.kernels import activate_all, add_up, product

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


def spread(call: Call) -> Tensor:
    """What all taps see of the images, channel by channel, for every pixel of the outcome."""
    from recollect.accelerate.tf32x3.kernels import spread_taps

    count, down, across, _ = call.outcome
    taps, channels = call.weight.shape[2:], call.x.shape[3]
    terms = packed_shape(call.weight.shape, Way.SPREAD)[3]
    x = call.x.resolve_neg()
    x = x if x.permute(0, 3, 1, 2).is_contiguous() else x.contiguous()  # as networks are given images, or as maps lie
    out = x.new_empty(count * down * across, 1, 1, terms)
    with _current(x.device):
        spread_taps[(-(-out.numel() // MOVED),)](
            x, out, out.numel(), down, across, *x.shape[1:3], channels, taps[0] * taps[1] * channels, taps[1],
            call.stride, *call.padding, *x.stride(), TERMS=terms, BLOCK=MOVED,
        )  # fmt: skip
    return out


def gather(call: Call, products: Tensor, activation: Activation | None) -> Outcome:
    """The sum over all taps of their products with the pixels that they see."""
    from recollect.accelerate.tf32x3.kernels import gather_taps

    _, down, across, columns = call.outcome
    taps = call.weight.shape[2:]
    out = call.x.new_empty(call.outcome)
    activated = torch.empty_like(out) if activation else None
    name, slope = activation or (None, 0.0)
    with _current(out.device):
        gather_taps[(-(-out.numel() // GATHERED_BLOCK),)](
            products, call.bias, out, out if activated is None else activated, slope, out.numel(), down, across,
            *call.x.shape[1:3], columns, products.shape[3], *call.padding, TAPS_DOWN=taps[0], TAPS_ACROSS=taps[1],
            BLOCK=GATHERED_BLOCK, ACTIVATION=name,
        )  # fmt: skip
    return Outcome(out, activated)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Inside, kernels are launched on this device."""
    return nullcontext() if torch.cuda.current_device() == device.index else torch.cuda.device(device)


def double(x: Tensor) -> Tensor:
    """Every pixel of feature maps twice, down and across; they lie channels last, before and after."""
    from recollect.accelerate.tf32x3.kernels import twice

    count, channels, height, width = x.shape
    out = x.new_empty(count, 2 * height, 2 * width, channels)
    with _current(x.device):
        twice[(-(-out.numel() // MOVED),)](x, out, out.numel(), width, channels, BLOCK=MOVED)
    return out.permute(0, 3, 1, 2)


def halve(x: Tensor) -> Tensor | None:
    """The largest of each two by two pixels of feature maps, which lie channels last, before and after; nothing where
    there are none, which the library has a word for."""
    count, channels, height, width = x.shape
    if min(height, width) < 2:
        return None
    from recollect.accelerate.tf32x3.kernels import largest_of_four

    out = x.new_empty(count, height // 2, width // 2, channels)
    with _current(x.device):
        largest_of_four[(-(-out.numel() // MOVED),)](x, out, out.numel(), height, width, channels, BLOCK=MOVED)
    return out.permute(0, 3, 1, 2)


def move(w: Tensor, v: Tensor, of_y: Tensor, of_w: Tensor) -> None:
    """w <- of_y + (1 - 2 of_w) v + of_w w, in one pass; all but v lie one value after another."""
    from recollect.accelerate.tf32x3.kernels import next_point

    with _current(w.device):
        next_point[(-(-w.numel() // MOVED),)](w, as_it_lies(v), of_y, of_w, w.numel(), BLOCK=MOVED)
