"""Float32 products of a network on a GPU's tensor cores: about as exact as the library's, and faster.

Linear layers and convolutions run in a kernel of our own (`products.py`), and an activation that follows one is
computed along with it. Where feature maps are doubled before a convolution, its taps meet each pixel up to four times:
it runs on the maps as they were, with the taps added up, in less than half the products.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from recollect.recovery.layer_calls import LAYERS, activation_of, doubles, on_halves
from recollect.recovery.products import (
    LARGEST,
    Activation,
    Call,
    Packed,
    as_it_lies,
    double,
    move,
    pack,
    packed_bytes,
    processors_of,
    run_kernel,
    state_of,
)

FEWEST_CHANNELS = 16  # fewer leave most of a chunk empty: the library is as fast
IN_WORDS = "float32 on tensor cores: three TF32 products, sums of 32 terms"  # in records, or ...
BY_THE_LIBRARY = "by the library"
TRIED = [(84, 8), (84, 48), (378, 128)]  # rows and columns of first products: one for each width of a tile

_wanted = ContextVar("_wanted", default=True)

note = logging.getLogger(__name__).info


def exact_products(modules: Iterable[nn.Module], device: torch.device) -> AbstractContextManager[Any]:
    """Inside, layers among these run on tensor cores where that can be had; else a word says why not."""
    weights = weights_among(modules, device) if device.type == "cuda" and _wanted.get() else []
    if not weights:
        return nullcontext()
    if sum(packed_bytes(w) for w in weights) > free_memory(device) // 2:
        note("Products run in the library: the weights, split for them, would fill the device's memory.")
        return nullcontext()
    works = all(_kernel_works(device, spatial) for spatial in {w.ndim == 4 for w in weights})
    return TensorCores(weights, device, processors_of(device)) if works else nullcontext()


@contextmanager
def library_products() -> Iterator[None]:
    """Inside, recoveries run everything in PyTorch's library, also where our kernels can be had."""
    before = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(before)


def weights_among(modules: Iterable[nn.Module], device: torch.device) -> list[Tensor]:
    """Those of layers that the kernel can run; not of parametrized ones, which make a weight when it is asked for."""
    named = [m._parameters.get("weight") for m in modules if isinstance(m, (nn.Linear, nn.Conv2d))]
    return [w for w in named if w is not None and is_plain(w, device) and w.shape[1] >= FEWEST_CHANNELS]


def free_memory(device: torch.device) -> int:
    """Bytes of a GPU that can be had: what nobody has, and what PyTorch holds without using it."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


class Latest(NamedTuple):
    """What a layer has just returned, and an activation of it where one followed when the layer ran before."""

    weight: int  # of the layer
    values: weakref.ref[Tensor]
    version: int
    activation: Activation | None
    activated: Tensor | None


class Doubled(NamedTuple):
    """Images that have just been made of others, with every pixel doubled: a convolution of them costs less than half
    on those."""

    values: weakref.ref[Tensor]
    halves: Tensor
    versions: tuple[int, int]

    def still_holds(self, values: Tensor) -> bool:
        return self.values() is values and self.versions == (values._version, self.halves._version)


class TensorCores(TorchFunctionMode):
    """Inside, layers with these weights run in the kernel; all else runs as it is.

    Feature maps lie channels last in memory, as the kernel reads them, or `as_given`, for networks that need that.
    Weights are taken to stay as they are, and so is what a layer returns until an activation right after it is asked
    for, and doubled maps and what they were made of until a convolution right after. A change that PyTorch knows of is
    seen: the weight runs in the library from then on, the activation too. One behind its back is not: of a weight
    through `.data`, of what a layer returned in compiled code of others.
    """

    def __init__(self, weights: Iterable[Tensor], device: torch.device, processors: int) -> None:
        super().__init__()
        self.as_given = False
        self._weights = {id(w): w for w in weights}
        self._packed: dict[int, dict[int, Packed]] = {id(w): {} for w in self._weights.values()}  # by scale
        self._device, self._processors = device, processors
        self._followed: dict[int, Activation] = {}  # layers, the last time that they ran
        self._latest: Latest | Doubled | None = None

    def __exit__(self, *error: Any) -> None:
        self._latest = None
        super().__exit__(*error)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        latest, self._latest = self._latest, None  # of the very next call alone: others may write into it
        activated = self._activated(latest, func, args, kwargs) if isinstance(latest, Latest) else None
        if activated is not None:
            return activated
        call = None if kwargs else self._layer_call(func, args, latest)
        if call:
            return self._run(call, args[0].shape[:-1] if func is functional.linear else None)
        if doubles(func, args, kwargs) and self._are_maps(args[0]):
            return self._double(args[0])
        return func(*args, **(kwargs or {}))

    def _activated(self, latest: Latest, func: Any, args: tuple[Any, ...], kwargs: Any) -> Tensor | None:
        """If this is an activation of what a layer has just returned, its outcome where it is there; it will be the
        next time."""
        activation, values = activation_of(func, args, kwargs), latest.values()
        if activation is None or values is None or args[0] is not values or values._version != latest.version:
            self._followed.pop(latest.weight, None)
            return None
        self._followed[latest.weight] = activation
        return latest.activated if activation == latest.activation else None

    def _layer_call(self, func: Any, args: tuple[Any, ...], latest: Latest | Doubled | None) -> Call | None:
        """The call of a layer that the kernel can run, on images before they were doubled where that has just been."""
        read = LAYERS.get((func, len(args)))
        call = read(*args) if read and self._are_ours(*args[:3]) else None
        if call is None:
            return None
        halves = latest.halves if isinstance(latest, Doubled) and latest.still_holds(args[0]) else None
        calls = (None if halves is None else on_halves(call, halves), call)
        return next((call for call in calls if call and call.can_be_counted), None)

    def _are_ours(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """A layer that is known, plain values, and nobody who asks for more than these."""
        if id(weight) not in self._weights or self._more_is_asked:
            return False
        if not all(is_plain(values, self._device) for values in (x, weight, bias) if values is not None):
            return False
        if any(packed.state != state_of(weight) for packed in self._packed[id(weight)].values()):
            del self._weights[id(weight)]  # what is packed stays: a graph may read it
            return False
        return x.numel() > 0

    @property
    def _more_is_asked(self) -> bool:
        """Than values: gradients, other dtypes, a trace."""
        return torch.is_grad_enabled() or torch.is_autocast_enabled(self._device.type) or torch.compiler.is_compiling()

    def _are_maps(self, x: Tensor) -> bool:
        """Plain feature maps as our products leave them."""
        if self._more_is_asked or not is_plain(x, self._device) or x.ndim != 4 or x.is_neg():
            return False
        return x.is_contiguous(memory_format=torch.channels_last) and 0 < x.numel() < LARGEST // 4

    def _double(self, x: Tensor) -> Tensor:
        out = double(x)
        if not out.is_inference() and not x.is_inference():  # there, writes are not counted
            self._latest = Doubled(weakref.ref(out), x, (out._version, x._version))
        return out

    def _run(self, call: Call, rows: torch.Size | None) -> Tensor:
        """What the layer returns: with so many rows, or feature maps."""
        key, bias = id(call.weight), call.bias
        if call.scale not in self._packed[key]:
            self._packed[key][call.scale] = pack(call.weight, call.scale)
        bias = call.x.new_zeros(len(call.weight)) if bias is None else as_it_lies(bias)
        call, activation = call._replace(x=as_it_lies(call.x), bias=bias), self._followed.get(key)
        outcome = run_kernel(call, self._packed[key][call.scale], self._processors, activation)
        values, activated = (None if out is None else self._as_returned(out, rows) for out in outcome)
        assert values is not None
        if not values.is_inference():  # there, writes are not counted
            self._latest = Latest(key, weakref.ref(values), values._version, activation, activated)
        return values

    def _as_returned(self, out: Tensor, rows: torch.Size | None) -> Tensor:
        if rows is not None:
            return out.view(*rows, -1)
        maps = out.permute(0, 3, 1, 2)
        return maps.contiguous() if self.as_given or maps.shape[1] < FEWEST_CHANNELS else maps


def is_plain(values: Tensor, device: torch.device) -> bool:
    """Float32 values in the device's memory and nothing else: no subclass, no tensor of `torch.func`, no tangent."""
    if type(values) not in (Tensor, nn.Parameter) or values.layout != torch.strided or values.is_nested:
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(values) or unpack_dual(values).tangent is not None
    return values.dtype == torch.float32 and values.device == device and not wrapped


@cache
def _kernel_works(device: torch.device, spatial: bool) -> bool:
    """Whether the kernel can be had: there are tensor cores and a compiler, and first products are right."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        note("Products run in the library: %s has no tensor cores for TF32.", torch.cuda.get_device_name(device))
        return False
    try:
        right = all(_is_right(device, rows, columns, spatial) for rows, columns in TRIED) and _moves(device)
    except torch.cuda.OutOfMemoryError:
        raise  # that is not the kernel's, and may be over the next time
    except Exception as error:  # no triton, no compiler, a version of either that cannot: recovery needs none of them
        note("Products run in the library: the kernel cannot be had (%s: %s).", type(error).__name__, error)
        return False
    if not right:
        note("Products run in the library: the kernel's first products are wrong.")
    return right


def _is_right(device: torch.device, rows: int, columns: int, spatial: bool) -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be TF32's, or a slip."""
    generator = torch.Generator(device).manual_seed(0)
    of_x, taps = ((rows // 42, 6, 7, 48), (3, 3)) if spatial else ((rows, 1, 1, 48), (1, 1))
    x, weight, bias = (
        torch.randn(shape, device=device, dtype=torch.float32, generator=generator)
        for shape in (of_x, (columns, 48, *taps), (columns,))
    )
    padding = (taps[0] // 2, taps[1] // 2)
    out = run_kernel(Call(x, weight, bias, padding=padding), pack(weight), processors_of(device)).values
    exact = functional.conv2d(x.permute(0, 3, 1, 2).double(), weight.double(), bias.double(), padding=padding)
    return bool((out.permute(0, 3, 1, 2) - exact).abs().max() < 1e-6 * exact.abs().max())


def _moves(device: torch.device) -> bool:
    """Whether a first step between two products is right."""
    w, v, of_y, of_w = torch.rand(4, 100, device=device, generator=torch.Generator(device).manual_seed(0))
    exact = of_y.double() + (1 - 2 * of_w.double()) * v + of_w.double() * w
    move(w, v, of_y, of_w)
    return bool((w - exact).abs().max() < 1e-6)
