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
from torch.autograd.forward_ad import unpack_dual
from torch.nn import functional
from torch.overrides import TorchFunctionMode

CHUNK = 32  # terms that tensor cores add up, before float32 does
ROWS = 64  # of a tile: fewer images take as long
NARROW, WIDE = 64, 128  # columns of a tile of few rows and of many
MANY_ROWS = 256
AT_ONCE = {16: 4, NARROW: 3, WIDE: 2}  # tiles that a processor works on, by their columns
SHORTEST = 3  # chunks of a part
BLOCK, TOGETHER = 512, 4  # values that are added up by one of the kernel's programs, parts that it reads at a time
FEWEST_CHANNELS = 16  # fewer leave most of a chunk empty: the library is as fast
IN_WORDS = "float32 on tensor cores: three TF32 products, sums of 32 terms"  # in records
LARGEST = 2**31  # values that the kernel cannot count any more
MOST_TILES = 65_535  # side by side
TRIED = [((2, 6, 7, 48), (columns, 48, 3, 3)) for columns in (8, 48)]  # x and weight of first products, ...
TRIED.append(((9, 6, 7, 48), (128, 48, 3, 3)))  # ... one for each width of a tile

note = logging.getLogger(__name__).info


def exact_products(modules: Iterable[nn.Module], device: torch.device) -> AbstractContextManager[Any]:
    """Inside, layers among these run on tensor cores where that can be had; else a word says why not."""
    weights = weights_among(modules, device) if device.type == "cuda" else []
    if not weights:
        return nullcontext()
    if 2 * sum(filled_size(w) * w.element_size() for w in weights) > free_memory(device) // 2:
        note("Products run in the library: the weights twice more would fill the device's memory.")
        return nullcontext()
    return TensorCores(weights, device, processors_of(device)) if _kernel_works(device) else nullcontext()


def weights_among(modules: Iterable[nn.Module], device: torch.device) -> list[Tensor]:
    """Those of layers that the kernel can run; not of parametrized ones, which make a weight when it is asked for."""
    named = [m._parameters.get("weight") for m in modules if isinstance(m, (nn.Linear, nn.Conv2d))]
    return [w for w in named if w is not None and is_plain(w, device) and w.shape[1] >= FEWEST_CHANNELS]


def free_memory(device: torch.device) -> int:
    """Bytes of a GPU that can be had: what nobody has, and what PyTorch holds without using it."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def processors_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


class Call(NamedTuple):
    """A layer that is applied to x: images x height x width x channels."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: int = 1
    padding: tuple[int, int] = (0, 0)

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """The shape of what comes out: images x down x across x columns."""
        count, height, width, _ = self.x.shape
        taps_down, taps_across = self.weight.shape[2:] or (1, 1)
        down = (height + 2 * self.padding[0] - taps_down) // self.stride + 1
        across = (width + 2 * self.padding[1] - taps_across) // self.stride + 1
        return count, down, across, len(self.weight)

    @property
    def can_be_counted(self) -> bool:
        outcome = self.outcome
        values = max(self.x.numel(), math.prod(outcome), filled_size(self.weight))
        return min(outcome) > 0 and values < LARGEST and len(self.weight) < NARROW * MOST_TILES


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Call | None:
    """A call of `functional.linear`; nothing where it is wrong, or a matrix and a vector: libraries do that well."""
    right = weight.ndim == 2 and x.ndim > 1 and x.shape[-1] == weight.shape[1] and _fits(bias, weight)
    rows = x.reshape(-1, 1, 1, x.shape[-1]) if right else x
    return Call(rows, weight, bias) if right and len(rows) > 1 else None


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Call | None:
    """A call of `torch.conv2d` with the settings as `nn.Conv2d` gives them; nothing where it is another, or wrong."""
    right = weight.ndim == x.ndim == 4 and x.shape[1] == weight.shape[1] and _fits(bias, weight)
    if not right or not is_usual(stride, padding, dilation, groups):
        return None
    return Call(x.permute(0, 2, 3, 1), weight, bias, stride[0], padding)


def _fits(bias: Tensor | None, weight: Tensor) -> bool:
    return bias is None or bias.shape == (len(weight),)


def is_usual(stride: Any, padding: Any, dilation: Any, groups: Any) -> bool:
    """Neither dilated nor grouped, as far down as across."""
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in (stride, padding, dilation))
    return pairs and stride[0] == stride[1] > 0 and min(padding) >= 0 and dilation == (1, 1) and groups == 1


LAYERS: dict[Any, Callable[..., Call | None]] = {(functional.linear, 3): linear, (torch.conv2d, 7): convolution}


class Packed(NamedTuple):
    """A weight as the kernel reads it: columns x taps down x taps across x channels, these in whole chunks."""

    upper: Tensor  # in TF32, and so is the rest
    rest: Tensor
    state: tuple[int, int]  # of the weight


class Tiling(NamedTuple):
    columns: int  # of a tile
    chunks_each: int  # of a part of the sum
    parts: int


class TensorCores(TorchFunctionMode):
    """Inside, layers with these weights run in the kernel; all else runs as it is.

    Feature maps lie channels last in memory, as the kernel reads them, or `as_given`, for networks that need that.
    Weights are taken to stay as they are; one that is seen to change runs in the library from then on (a change behind
    PyTorch's back, through `.data`, is not seen).
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
        read = None if kwargs else LAYERS.get((func, len(args)))
        call = read(*args) if read and self._are_ours(*args[:3]) else None
        if call is None or not call.can_be_counted:
            return func(*args, **(kwargs or {}))
        out = self._run(call)
        if read is linear:
            return out.view(*args[0].shape[:-1], -1)
        out = out.permute(0, 3, 1, 2)
        return out.contiguous() if self.as_given or len(call.weight) < FEWEST_CHANNELS else out

    def _are_ours(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """A layer that is known, plain values, and nobody who asks for more than these."""
        asked = torch.is_grad_enabled() or torch.is_autocast_enabled(self._device.type) or torch.compiler.is_compiling()
        if id(weight) not in self._weights or asked:
            return False
        if not all(is_plain(values, self._device) for values in (x, weight, bias) if values is not None):
            return False
        packed = self._packed.get(id(weight))
        if packed and packed.state != state_of(weight):
            del self._weights[id(weight)]  # what is packed stays: a graph may read it
            return False
        return x.numel() > 0

    def _run(self, call: Call) -> Tensor:
        weight, bias = call.weight, call.bias
        if id(weight) not in self._packed:
            self._packed[id(weight)] = pack(weight)
        bias = call.x.new_zeros(len(weight)) if bias is None else as_it_lies(bias)
        return run_kernel(call._replace(x=as_it_lies(call.x), bias=bias), self._packed[id(weight)], self._processors)


def is_plain(values: Tensor, device: torch.device) -> bool:
    """Float32 values in the device's memory and nothing else: no subclass, no tensor of `torch.func`, no tangent."""
    if type(values) not in (Tensor, nn.Parameter) or values.layout != torch.strided or values.is_nested:
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(values) or unpack_dual(values).tangent is not None
    return values.dtype == torch.float32 and values.device == device and not wrapped


def as_it_lies(values: Tensor) -> Tensor:
    """As they are, one after another: a negation may be pending."""
    return values.resolve_neg().contiguous()


def filled_size(weight: Tensor) -> int:
    """Values of a weight whose channels are filled up to whole chunks."""
    return weight.numel() // weight.shape[1] * -(-weight.shape[1] // CHUNK) * CHUNK


def state_of(weight: Tensor) -> tuple[int, int]:
    """Its place in memory and its version, which tell whether it is still the same; in inference mode none is kept."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def pack(weight: Tensor) -> Packed:
    taps = weight if weight.ndim == 4 else weight[:, :, None, None]
    values = functional.pad(as_it_lies(taps.permute(0, 2, 3, 1)), (0, -weight.shape[1] % CHUNK))
    upper = in_tf32(values)
    return Packed(upper, in_tf32(values - upper), state_of(weight))


def in_tf32(x: Tensor) -> Tensor:
    """Rounded to eleven bits, the nearest: what is left has twelve. What is no number stays so."""
    rounded = ((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x)


def tiling(rows: int, columns: int, chunks: int, processors: int) -> Tiling:
    """How wide tiles are, and into how many parts the sum is cut so that all processors have some."""
    wide = WIDE if columns >= WIDE and rows > MANY_ROWS else NARROW if columns > 16 else 16
    tiles = -(-rows // ROWS) * -(-columns // wide)
    parts = max(1, min(AT_ONCE[wide] * processors // tiles, chunks // SHORTEST))
    each = -(-chunks // parts)
    return Tiling(wide, each, -(-chunks // each))


def run_kernel(call: Call, layer: Packed, processors: int) -> Tensor:
    """What comes out of a call whose values lie one after another."""
    from recollect.recovery.product_kernel import add_up, product

    x, _, bias, stride, padding = call
    _, height, width, channels = x.shape
    columns, taps_down, taps_across, filled = layer.upper.shape
    count, down, across, _ = call.outcome
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
        right = all(_is_right(device, *shapes) for shapes in TRIED)
    except torch.cuda.OutOfMemoryError:
        raise  # that is not the kernel's, and may be over the next time
    except Exception as error:  # no triton, no compiler, a version of either that cannot: recovery needs none of them
        note("Products run in the library: the kernel cannot be had (%s: %s).", type(error).__name__, error)
        return False
    if not right:
        note("Products run in the library: the kernel's first products are wrong.")
    return right


def _is_right(device: torch.device, of_x: tuple[int, ...], of_weight: tuple[int, ...]) -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be TF32's, or a slip."""
    generator = torch.Generator(device).manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, device=device, dtype=torch.float32, generator=generator)
        for shape in (of_x, of_weight, of_weight[:1])
    )
    out = run_kernel(Call(x, weight, bias, padding=(1, 1)), pack(weight), processors_of(device))
    exact = functional.conv2d(x.permute(0, 3, 1, 2).double(), weight.double(), bias.double(), padding=1)
    return bool((out.permute(0, 3, 1, 2) - exact).abs().max() < 1e-6 * exact.abs().max())
