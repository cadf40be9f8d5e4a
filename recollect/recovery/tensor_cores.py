"""Float32 products of a network on a GPU's tensor cores: about as exact as the library's, and faster.

Linear layers and convolutions run in a kernel of our own (`product_kernel.py`). Only how sums are taken changes, and
with it rounding. Products of few images are also cut along their sums: whole ones would leave most of the GPU idle.
"""

from __future__ import annotations

import logging
import math
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
LARGEST = 2**31  # values that the kernel cannot count any more
TRIED = ((80, 8), (80, 48), (300, 128))  # rows and columns of first products, one for each width of a tile

note = logging.getLogger(__name__).info


def exact_products(modules: Iterable[nn.Module], device: torch.device) -> AbstractContextManager[Any]:
    """Inside, layers among these run on tensor cores where that can be had; else a word says why not."""
    weights = [m.weight for m in modules if isinstance(m, (nn.Linear, nn.Conv2d))]
    weights = [w for w in weights if isinstance(w, nn.Parameter) and w.dtype == torch.float32 and w.device == device]
    if device.type != "cuda" or not weights:
        return nullcontext()
    if 2 * sum(w.nbytes for w in weights) > free_memory(device) // 2:
        note("Products run in the library: the weights twice more would fill the device's memory.")
        return nullcontext()
    return TensorCores(weights, device, processors_of(device)) if _kernel_works(device) else nullcontext()


def free_memory(device: torch.device) -> int:
    """Bytes of a GPU that can be had: what nobody has, and what PyTorch holds without using it."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def processors_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


class Packed(NamedTuple):
    """A weight as the kernel reads it: columns x taps down x taps across x channels, these in whole chunks."""

    upper: Tensor  # in TF32, and so is the rest
    rest: Tensor
    of: tuple[int, int]  # the weight's place in memory and its version, which tell whether it is still the same


class Tiling(NamedTuple):
    columns: int  # of a tile
    chunks_each: int  # of a part of the sum
    parts: int


class TensorCores(TorchFunctionMode):
    """Inside, layers with these weights run in the kernel; all else runs as it is.

    Feature maps lie channels last in memory, as the kernel reads them, or `as_given`, for networks that need that.
    """

    def __init__(self, weights: Iterable[Tensor], device: torch.device, processors: int) -> None:
        super().__init__()
        self.as_given = False
        self._weights = {id(w): w for w in weights}
        self._packed: dict[int, Packed] = {}
        self._device, self._processors = device, processors

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if not kwargs and func is functional.linear and len(args) == 3 and self._takes(*args, channels_at=-1):
            return self._linear(*args)
        if not kwargs and func is torch.conv2d and len(args) == 7 and is_plain(*args[3:]):
            x, weight, bias, stride, padding = args[:5]
            if self._takes(x, weight, bias, channels_at=1):
                return self._convolve(x, weight, bias, stride[0], padding)
        return func(*args, **(kwargs or {}))

    def _takes(self, x: Tensor, weight: Tensor, bias: Tensor | None, channels_at: int) -> bool:
        """Whether the kernel gives what the library does; what is wrong in itself is left to the library to say."""
        if id(weight) not in self._weights or torch.is_grad_enabled() or torch.is_autocast_enabled(self._device.type):
            return False
        columns, channels = weight.shape[:2]
        fits = x.ndim >= weight.ndim and x.shape[channels_at] == channels >= FEWEST_CHANNELS
        adds = bias is None or (bias.shape == (columns,) and _is_here(bias, self._device))
        return fits and adds and _is_here(x, self._device) and _is_here(weight, self._device) and x.numel() > 0

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.reshape(-1, 1, 1, x.shape[-1])
        if len(rows) == 1:  # a matrix and a vector: libraries do that well
            return functional.linear(x, weight, bias)
        out = self._product(rows, weight, bias, 1, (0, 0))
        return functional.linear(x, weight, bias) if out is None else out.view(*x.shape[:-1], -1)

    def _convolve(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: tuple[int, int]
    ) -> Tensor:
        out = self._product(x.permute(0, 2, 3, 1), weight, bias, stride, padding) if x.ndim == 4 else None
        if out is None:
            return torch.conv2d(x, weight, bias, stride, padding)
        out = out.permute(0, 3, 1, 2)
        return out.contiguous() if self.as_given or len(weight) < FEWEST_CHANNELS else out

    def _product(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: tuple[int, int]
    ) -> Tensor | None:
        """x (images x height x width x channels) through a layer; nothing where it is beyond what the kernel counts."""
        shape = outcome(x, weight, stride, padding)
        if min(shape) < 1 or max(x.numel(), math.prod(shape), filled_size(weight)) >= LARGEST:
            return None
        bias = x.new_zeros(len(weight)) if bias is None else bias
        return run_kernel(as_it_lies(x), self._pack(weight), as_it_lies(bias), stride, padding, self._processors)

    def _pack(self, weight: Tensor) -> Packed:
        now, packed = (weight.data_ptr(), weight._version), self._packed.get(id(weight))
        if packed is None or packed.of != now:
            packed = self._packed[id(weight)] = pack(weight)
        return packed


def is_plain(stride: Any, padding: Any, dilation: Any, groups: int) -> bool:
    """Settings of a convolution that the kernel knows, as `nn.Conv2d` gives them."""
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in (stride, padding, dilation))
    return pairs and stride[0] == stride[1] and dilation == (1, 1) and groups == 1


def _is_here(x: Tensor, device: torch.device) -> bool:
    """Plain float32 values on the device: a tensor of `torch.func` has no memory of its own."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(x)
    return x.dtype == torch.float32 and x.device == device and not wrapped


def as_it_lies(x: Tensor) -> Tensor:
    """The values as they are, one after another: a negation may be pending."""
    return x.resolve_neg().contiguous()


def outcome(x: Tensor, weight: Tensor, stride: int, padding: tuple[int, int]) -> tuple[int, int, int, int]:
    """The shape of what a layer makes of x: images x down x across x columns."""
    count, height, width, _ = x.shape
    down, across = weight.shape[2:] or (1, 1)
    return (
        count, (height + 2 * padding[0] - down) // stride + 1, (width + 2 * padding[1] - across) // stride + 1,
        len(weight),
    )  # fmt: skip


def filled_size(weight: Tensor) -> int:
    """Values of a weight whose channels are filled up to whole chunks."""
    return weight.numel() // weight.shape[1] * -(-weight.shape[1] // CHUNK) * CHUNK


def pack(weight: Tensor) -> Packed:
    taps = weight if weight.ndim == 4 else weight[:, :, None, None]
    values = functional.pad(as_it_lies(taps.permute(0, 2, 3, 1)), (0, -weight.shape[1] % CHUNK))
    upper = in_tf32(values)
    return Packed(upper, in_tf32(values - upper), (weight.data_ptr(), weight._version))


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


def run_kernel(
    x: Tensor, layer: Packed, bias: Tensor, stride: int, padding: tuple[int, int], processors: int
) -> Tensor:
    """x (images x height x width x channels) through a layer."""
    from recollect.recovery.product_kernel import add_up, product

    _, height, width, channels = x.shape
    columns, taps_down, taps_across, filled = layer.upper.shape
    count, down, across, _ = outcome(x, layer.upper.permute(0, 3, 1, 2), stride, padding)
    rows, chunks = count * down * across, taps_down * taps_across * filled // CHUNK
    wide, each, parts = tiling(rows, columns, chunks, processors)
    sums = x.new_empty(parts, count, down, across, columns)
    with torch.cuda.device(x.device):
        product[-(-rows // ROWS), -(-columns // wide), parts](
            x, layer.upper, layer.rest, bias, sums, rows, columns, channels, height, width, down, across,
            taps_across, stride, *padding, chunks, each, ROWS=ROWS, COLUMNS=wide, CHUNK=CHUNK, num_stages=3,
        )  # fmt: skip
        if parts == 1:
            return sums[0]
        out = torch.empty_like(sums[0])
        add_up[(-(-out.numel() // BLOCK),)](sums, out, out.numel(), parts, BLOCK=BLOCK, TOGETHER=TOGETHER)
    return out


@cache
def _kernel_works(device: torch.device) -> bool:
    """Whether the kernel can be had: there are tensor cores and a compiler, and first products are right."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        note("Products run in the library: %s has no tensor cores for TF32.", torch.cuda.get_device_name(device))
        return False
    try:
        right = all(_is_right(device, rows, columns) for rows, columns in TRIED)
    except torch.cuda.OutOfMemoryError:
        raise  # that is not the kernel's, and may be over the next time
    except Exception as error:  # no triton, no compiler, a version of either that cannot: recovery needs none of them
        note("Products run in the library: the kernel cannot be had (%s: %s).", type(error).__name__, error)
        return False
    if not right:
        note("Products run in the library: the kernel's first products are wrong.")
    return right


def _is_right(device: torch.device, rows: int, columns: int) -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be TF32's, or a slip."""
    draw = torch.Generator(device).manual_seed(0)
    x, weight, bias = (
        torch.randn(*s, device=device, generator=draw) for s in ((rows, 256), (columns, 256), (columns,))
    )
    out = run_kernel(x[:, None, None], pack(weight), bias, 1, (0, 0), processors_of(device)).view(rows, columns)
    exact = functional.linear(x.double(), weight.double(), bias.double())
    return bool((out - exact).abs().max() < 1e-6 * exact.abs().max())
