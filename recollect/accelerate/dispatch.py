"""Float32 products of a network in kernels that are faster than PyTorch's choice and about as exact.

On a GPU linear layers and convolutions run on tensor cores, and an activation that follows one comes along with it.
Where feature maps are doubled before a convolution, its taps meet each pixel up to four times: it runs on the maps as
they were, with the taps added up, in less than half the products. Maps are also halved here, for speed alone. On a CPU
linear layers run in oneDNN.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from recollect.accelerate.onednn import OneDnn
from recollect.accelerate.recognise import LAYERS, activation_of, doubles, halves, on_halves
from recollect.accelerate.tf32x3.backend import TensorCores
from recollect.accelerate.tf32x3.launch import LARGEST, Activation, Call, Outcome
from recollect.accelerate.tf32x3.packing import FEWEST_CHANNELS, Way, as_it_lies, state_of
from recollect.devices.memory import free_memory

WATCHED = {*(func for func, _ in LAYERS), functional.interpolate, functional.max_pool2d}  # and what comes right after

log = logging.getLogger(__name__).info


class Backend(Protocol):
    """What a device has for products."""

    in_words: str  # in records
    fewest_images: int  # that gain by them
    computes_activations: bool  # along with a layer, where one follows

    def take(self, weight: Tensor, /) -> bool:
        """Whether layers with this weight gain by them."""

    def packed_bytes(self, weight: Tensor, /) -> int:
        """The memory that it takes at most, packed."""

    def work_for(self, weights: list[Tensor], /) -> bool:
        """Whether they can be had, and are right; else a word says why not."""

    def pack(self, weight: Tensor, way: Way, /) -> Any:
        """A weight as they read it."""

    def run(self, call: Call, packed: Any, activation: Activation | None, /) -> Outcome:
        """A layer, and an activation after it."""

    def double(self, maps: Tensor, /) -> Tensor | None:
        """Every pixel of feature maps twice, down and across, if that is for them to do."""

    def halve(self, maps: Tensor, /) -> Tensor | None:
        """The largest of each two by two pixels, if that is for them to do."""


def find_kernels(modules: Iterable[nn.Module], device: torch.device) -> KernelDispatch | None:
    """Kernels for layers among these modules, where some gain; a log line says why not."""
    backend = backend_for(device)
    weights = weights_among(modules, device, backend) if backend else []
    if backend is None or not weights:
        return None
    if sum(backend.packed_bytes(w) for w in weights) > free_memory(device) // 2:
        log("Layers run in PyTorch's kernels: packed weights would fill the device's memory.")
        return None
    return KernelDispatch(weights, device, backend) if backend.work_for(weights) else None


def backend_for(device: torch.device) -> Backend | None:
    if device.type == "cuda":
        return TensorCores(device)
    return OneDnn() if device.type == "cpu" else None


def weights_among(modules: Iterable[nn.Module], device: torch.device, backend: Backend) -> list[Tensor]:
    """Those of layers that the kernels take; not of parametrized ones, which make a weight when it is asked for."""
    named = [m._parameters.get("weight") for m in modules if isinstance(m, nn.Linear) or _is_plain_convolution(m)]
    return [w for w in named if w is not None and is_plain(w, device) and backend.take(w)]


def _is_plain_convolution(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d) and module.groups == 1 and module.dilation == (1, 1)


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


class KernelDispatch(TorchFunctionMode):
    """Inside, layers with these weights run in the kernels; all else runs as it is.

    Feature maps lie channels last in memory, as kernels read them, or `as_given`, for networks that need that.
    Weights are taken to stay as they are, and so is what a layer returns until an activation right after it is asked
    for, and doubled maps and what they were made of until a convolution right after. A change that PyTorch knows of is
    seen: the weight runs in the library from then on, the activation too. One behind its back is not: of a weight
    through `.data`, of what a layer returned in compiled code of others.
    """

    def __init__(self, weights: Iterable[Tensor], device: torch.device, backend: Backend) -> None:
        super().__init__()
        self.as_given, self.backend = False, backend
        self._weights = {id(w): w for w in weights}
        self._packed: dict[int, dict[Way, Any]] = {id(w): {} for w in self._weights.values()}
        self._states: dict[int, tuple[int, int]] = {}  # of weights, when they were packed
        self._device = device
        self._followed: dict[int, Activation] = {}  # layers, the last time that they ran
        self._latest: Latest | Doubled | None = None
        self._watches = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, layers run in the library, and what follows them is noted for when they do not."""
        self._watches = True
        try:
            with self:
                yield
        finally:
            self._watches = False

    def __exit__(self, *error: Any) -> None:
        self._latest = None
        super().__exit__(*error)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        latest, self._latest = self._latest, None  # of the very next call alone: others may write into it
        if latest is None and func not in WATCHED:
            return func(*args, **(kwargs or {}))
        activated = self._activated(latest, func, args, kwargs) if isinstance(latest, Latest) else None
        if activated is not None:
            return activated
        call = None if kwargs else self._layer_call(func, args, latest)
        if call and self._watches:
            return self._returned(id(call.weight), func(*args))
        if call:
            return self._run(call, args[0].shape[:-1] if func is functional.linear else None)
        resized = None if self._watches else self._resized(func, args, kwargs)
        return func(*args, **(kwargs or {})) if resized is None else resized

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
        """The call of a layer that the kernels can run, on images before they were doubled where that has just been."""
        read = LAYERS.get((func, len(args)))
        call = read(*args) if read and self._are_ours(*args[:3]) else None
        if call is None:
            return None
        if isinstance(latest, Doubled) and latest.still_holds(args[0]):
            cheaper = on_halves(call, latest.halves)
            if cheaper and cheaper.can_be_counted:
                return cheaper
        return call if call.can_be_counted else None

    def _are_ours(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """A layer that is known, plain values, and nobody who asks for more than these."""
        if id(weight) not in self._weights or self._more_is_asked:
            return False
        state = state_of(weight)
        if self._states.setdefault(id(weight), state) != state:
            del self._weights[id(weight)]  # what is packed stays: a graph may read it
            return False
        return is_plain(x, self._device) and (bias is None or is_plain(bias, self._device))

    @property
    def _more_is_asked(self) -> bool:
        """Than values: gradients, other dtypes, a trace."""
        return torch.is_grad_enabled() or torch.is_autocast_enabled(self._device.type) or torch.compiler.is_compiling()

    def _are_maps(self, x: Tensor) -> bool:
        """Plain feature maps as our products leave them."""
        if self._more_is_asked or not is_plain(x, self._device) or x.ndim != 4 or x.is_neg():
            return False
        return x.is_contiguous(memory_format=torch.channels_last) and 0 < x.numel() < LARGEST // 4

    def _resized(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Tensor | None:
        """Feature maps that this call doubles or halves, where the kernels do it."""
        if doubles(func, args, kwargs) and self._are_maps(args[0]):
            return self._double(args[0])
        if halves(func, args, kwargs) and self._are_maps(args[0]):
            return self.backend.halve(args[0])
        return None

    def _double(self, x: Tensor) -> Tensor | None:
        out = self.backend.double(x)
        if out is not None and not out.is_inference() and not x.is_inference():  # there, writes are not counted
            self._latest = Doubled(weakref.ref(out), x, (out._version, x._version))
        return out

    def _run(self, call: Call, rows: torch.Size | None) -> Tensor:
        """What the layer returns: with so many rows, or feature maps."""
        key, bias, way = id(call.weight), call.bias, call.way
        if way not in self._packed[key]:
            if call.x.is_cuda and torch.cuda.is_current_stream_capturing():
                raise RuntimeError("a weight is packed before it is used in a graph, not at every replay")
            self._packed[key][way] = self.backend.pack(call.weight, way)
        bias = call.x.new_zeros(call.weight.shape[0]) if bias is None else as_it_lies(bias)
        activation = self._followed.get(key)
        outcome = self.backend.run(call._replace(bias=bias), self._packed[key][way], activation)
        values = self._as_returned(outcome.values, rows)
        activated = None if outcome.activated is None else self._as_returned(outcome.activated, rows)
        return self._returned(key, values, activation, activated)

    def _returned(
        self, key: int, values: Tensor, activation: Activation | None = None, activated: Tensor | None = None
    ) -> Tensor:
        """What a layer returns, kept in mind for what follows it."""
        if self.backend.computes_activations and not values.is_inference():  # there, writes are not counted
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
