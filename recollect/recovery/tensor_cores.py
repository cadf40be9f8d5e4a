"""Float32 products of a network on a GPU's tensor cores, as exact as the library's and faster.

Linear layers and convolutions run in a kernel of our own (`product_kernel.py`). Only how sums are taken changes, and
with it rounding. Products of few images are also cut along their sums: whole ones would leave most of the GPU idle.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

CHUNK = 32  # as in the kernel
ROWS = 64  # of a tile: fewer images take as long
NARROW, WIDE = 64, 128  # columns of a tile of few rows and of many
MANY_ROWS = 256
AT_ONCE = {16: 4, NARROW: 3, WIDE: 2}  # tiles that a processor works on, by their columns
SHORTEST = 3  # chunks of a part
BLOCK, TOGETHER = 512, 4  # values that are added up by one of the kernel's programs, parts that it reads at a time
FEWEST_CHANNELS = 16  # fewer leave most of a chunk empty: the library is as fast
IN_WORDS = "float32 on tensor cores: three TF32 products, sums of 32 terms"  # in records
LARGEST = 2**30  # values that the kernel surely can count

note = logging.getLogger(__name__).info


def exact_products(modules: Iterable[nn.Module], device: torch.device) -> AbstractContextManager[Any]:
    """Inside, layers among these run on tensor cores where that can be had; else a word says why not."""
    weights = [m.weight for m in modules if isinstance(m, (nn.Linear, nn.Conv2d))]
    weights = [w for w in weights if isinstance(w, nn.Parameter) and w.dtype == torch.float32 and w.device == device]
    if device.type != "cuda" or not weights:
        return nullcontext()
    free = torch.cuda.mem_get_info(device)[0]
    if 2 * sum(w.nbytes for w in weights) > free // 2:
        note("Products run in the library: the weights twice more would fill the device's memory.")
        return nullcontext()
    return TensorCores(weights, device) if _kernel_works(device) else nullcontext()


class Packed(NamedTuple):
    """A layer's weight as the kernel reads it: columns x taps down x taps across x channels, these in whole chunks."""

    upper: Tensor  # in TF32
    rest: Tensor
    bias: Tensor


class Tiling(NamedTuple):
    columns: int  # of a tile
    chunks_each: int  # of a part of the sum
    parts: int


class TensorCores(TorchFunctionMode):
    """Inside, layers with these weights run in the kernel; all else runs as it is.

    Feature maps lie channels last in memory, as the kernel reads them, or `as_given`, for networks that need that.
    """

    def __init__(self, weights: Iterable[Tensor], device: torch.device) -> None:
        super().__init__()
        self.as_given = False
        self._weights = {id(w): w for w in weights}
        self._packed: dict[tuple[int, int], Packed] = {}
        self._device = device
        self._processors = processors_of(device)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is functional.linear and len(args) == 3 and self._takes(*args[:2]):
            return self._linear(*args)
        if func is torch.conv2d and len(args) == 7 and self._takes(*args[:2]) and is_plain(*args[3:]):
            return self._convolve(*args[:3], args[3][0], args[4])
        return func(*args, **(kwargs or {}))

    def _takes(self, x: Tensor, weight: Tensor) -> bool:
        columns, channels = weight.shape[:2]
        countable = max(1, columns // channels) * x.numel() < LARGEST
        known = id(weight) in self._weights and channels >= FEWEST_CHANNELS and x.ndim >= weight.ndim
        return known and countable and x.numel() > 0 and x.device == self._device and x.dtype == torch.float32

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.reshape(-1, 1, 1, x.shape[-1])
        if len(rows) == 1:  # a matrix and a vector: libraries do that well
            return functional.linear(x, weight, bias)
        return self._product(rows.contiguous(), weight, bias).view(*x.shape[:-1], -1)

    def _convolve(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: tuple[int, int]
    ) -> Tensor:
        rows = x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
        out = self._product(rows, weight, bias, stride, padding).permute(0, 3, 1, 2)
        return out.contiguous() if self.as_given or len(weight) < FEWEST_CHANNELS else out

    def _product(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int = 1, padding: tuple[int, int] = (0, 0)
    ) -> Tensor:
        layer = id(weight), id(bias)
        if layer not in self._packed:
            self._packed[layer] = pack(weight, bias)
        return run_kernel(x, self._packed[layer], stride, padding, self._processors)


def is_plain(stride: Any, padding: Any, dilation: Any, groups: int) -> bool:
    """Settings of a convolution that the kernel knows."""
    numbers = isinstance(stride, tuple) and isinstance(padding, tuple)
    return numbers and stride[0] == stride[1] and tuple(dilation) == (1, 1) and groups == 1


def pack(weight: Tensor, bias: Tensor | None) -> Packed:
    taps_last = weight if weight.ndim == 4 else weight[:, :, None, None]
    values = functional.pad(taps_last.permute(0, 2, 3, 1), (0, -weight.shape[1] % CHUNK)).contiguous()
    upper = in_tf32(values)
    return Packed(upper, values - upper, weight.new_zeros(len(weight)) if bias is None else bias)


def in_tf32(x: Tensor) -> Tensor:
    """Rounded to eleven bits, the nearest: what is left has twelve."""
    return ((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def tiling(rows: int, columns: int, chunks: int, processors: int) -> Tiling:
    """How wide tiles are, and into how many parts the sum is cut so that all processors have some."""
    wide = WIDE if columns >= WIDE and rows > MANY_ROWS else NARROW if columns > 16 else 16
    tiles = -(-rows // ROWS) * -(-columns // wide)
    parts = max(1, min(AT_ONCE[wide] * processors // tiles, chunks // SHORTEST))
    each = -(-chunks // parts)
    return Tiling(wide, each, -(-chunks // each))


def run_kernel(x: Tensor, layer: Packed, stride: int, padding: tuple[int, int], processors: int) -> Tensor:
    """x (images x height x width x channels) through a layer."""
    from recollect.recovery.product_kernel import add_up, product

    count, height, width, channels = x.shape
    columns, taps_down, taps_across, filled = layer.upper.shape
    down = (height + 2 * padding[0] - taps_down) // stride + 1
    across = (width + 2 * padding[1] - taps_across) // stride + 1
    rows, chunks = count * down * across, taps_down * taps_across * filled // CHUNK
    wide, each, parts = tiling(rows, columns, chunks, processors)
    sums = x.new_empty(parts, count, down, across, columns)
    with torch.cuda.device(x.device):
        product[-(-rows // ROWS), -(-columns // wide), parts](
            x, layer.upper, layer.rest, layer.bias, sums, rows, columns, channels, height, width, down, across,
            taps_across, stride, *padding, chunks, each, ROWS=ROWS, COLUMNS=wide, CHUNK=CHUNK, num_stages=3,
        )  # fmt: skip
        if parts == 1:
            return sums[0]
        out = torch.empty_like(sums[0])
        add_up[(-(-out.numel() // BLOCK),)](sums, out, out.numel(), parts, BLOCK=BLOCK, TOGETHER=TOGETHER)
    return out


def processors_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def _kernel_works(device: torch.device) -> bool:
    """Whether the kernel can be had: there are tensor cores and a compiler, and a first product is right."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        note("Products run in the library: %s has no tensor cores for TF32.", torch.cuda.get_device_name(device))
        return False
    draw = torch.Generator(device).manual_seed(0)
    x, weight, bias = (torch.randn(*s, device=device, generator=draw) for s in ((80, 256), (48, 256), (48,)))
    try:
        out = run_kernel(x[:, None, None], pack(weight, bias), 1, (0, 0), processors_of(device)).view(80, 48)
    except Exception as error:  # no triton, no compiler, a version of either that cannot: recovery needs none of them
        note("Products run in the library: the kernel cannot be had (%s: %s).", type(error).__name__, error)
        return False
    exact = functional.linear(x.double(), weight.double(), bias.double())
    if not bool((out - exact).abs().max() < 1e-5 * exact.abs().max()):
        note("Products run in the library: the kernel's first product is wrong.")
        return False
    return True
