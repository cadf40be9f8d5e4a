"""Dispatch a network's layers to kernels that are faster than PyTorch's choice and about as exact.

On a GPU linear layers and convolutions run on tensor cores, and an activation after one in its epilogue. A convolution
right after upsampling reads the maps before they were upsampled, with taps summed up: less than half the work. On a CPU
linear layers run in oneDNN.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from recollect.accelerate.backend import Activation, Backend, LayerCall, contiguous
from recollect.accelerate.recognise import LAYERS, activation_of, is_max_pooling, is_upsampling
from recollect.devices.memory import free_memory

DISPATCHED = {*(func for func, _ in LAYERS), functional.interpolate, functional.max_pool2d}
FEWEST_CHANNELS_LAST = 16  # maps of fewer, such as images, are returned channels first

log = logging.getLogger(__name__).info


def find_kernels(
    modules: Iterable[nn.Module], device: torch.device, backend: Backend | None = None
) -> KernelDispatch | None:
    """Find kernels for layers among these modules that gain from them; log why there are none."""
    backend = backend or backend_for(device)
    weights = weights_among(modules, device, backend) if backend else []
    if backend is None or not weights:
        return None
    if sum(backend.packed_bytes(w) for w in weights) > free_memory(device) // 2:
        log("Layers run in PyTorch's kernels: packed weights would fill the device's memory.")
        return None
    return KernelDispatch(weights, device, backend) if backend.is_usable(weights) else None


def backend_for(device: torch.device) -> Backend | None:
    """Choose the backend of a device: the one function that names the backends."""
    if device.type == "cuda":
        from recollect.accelerate.tf32x3.tensor_cores import TensorCores

        return TensorCores(device)
    if device.type == "cpu":
        from recollect.accelerate.onednn import OneDnn

        return OneDnn()
    return None


def weights_among(modules: Iterable[nn.Module], device: torch.device, backend: Backend) -> list[Tensor]:
    """List the weights of layers that the backend takes.

    Parametrized layers are left out: reading their weight computes it, which may change their state.
    """
    weights = [m._parameters.get("weight") for m in modules if _is_supported(m)]
    return [w for w in weights if w is not None and is_plain(w, device) and backend.takes(w)]


def _is_supported(module: nn.Module) -> bool:
    if isinstance(module, nn.Conv2d):
        return module.groups == 1 and module.dilation == (1, 1)
    return isinstance(module, nn.Linear)


class LayerReturn(NamedTuple):
    """What a layer has just returned, and its activation if one followed when the layer ran before."""

    weight: int  # of the layer, its id
    values: weakref.ref[Tensor]
    version: int
    activation: Activation | None
    activated: Tensor | None

    def still_holds(self, values: Any) -> bool:
        returned = self.values()
        return returned is not None and returned is values and returned._version == self.version


class Upsampled(NamedTuple):
    """Maps that have just been upsampled, and their source."""

    values: weakref.ref[Tensor]
    source: Tensor
    versions: tuple[int, int]

    def still_holds(self, values: Tensor) -> bool:
        return self.values() is values and self.versions == (values._version, self.source._version)


class KernelDispatch(TorchFunctionMode):
    """Run layers with these weights in the backend's kernels while it is active, and all else as it is.

    Feature maps are channels last in memory, as kernels read them, or channels first with `channels_first`, for
    networks that need it. Weights must not change. A change that PyTorch counts is noticed, and the weight then runs in
    PyTorch. A change behind its back is not: of a weight through `.data`, or of a layer's output in compiled code
    between the layer and its activation.
    """

    def __init__(self, weights: Iterable[Tensor], device: torch.device, backend: Backend) -> None:
        super().__init__()
        self.channels_first, self.backend = False, backend
        self._weights = {id(w): w for w in weights}
        self._packed: dict[int, dict[Hashable, Any]] = {id(w): {} for w in self._weights.values()}
        self._states: dict[int, tuple[int, int]] = {}  # of weights, when they were packed
        self._device = device
        self._followed_by: dict[int, Activation] = {}  # activations right after layers, the last time that they ran
        self._previous: LayerReturn | Upsampled | None = None
        self._watches = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run layers in PyTorch, and note the activations that follow them."""
        self._watches = True
        try:
            with self:
                yield
        finally:
            self._watches = False

    def __exit__(self, *error: Any) -> None:
        self._previous = None
        super().__exit__(*error)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        previous, self._previous = self._previous, None  # for the very next call alone: others may write into it
        if previous is None and func not in DISPATCHED:
            return func(*args, **(kwargs or {}))
        replaced = self._replace(previous, func, args, kwargs)
        if replaced is None:
            return func(*args, **(kwargs or {}))
        return replaced

    def _replace(
        self, previous: LayerReturn | Upsampled | None, func: Any, args: tuple[Any, ...], kwargs: Any
    ) -> Tensor | None:
        """Compute a call in kernels; None leaves it to PyTorch."""
        if isinstance(previous, LayerReturn):
            activated = self._activated(previous, func, args, kwargs)
            if activated is not None:
                return activated
        call = None if kwargs else self._layer_call(func, args, previous)
        if self._watches:
            return self._remember(id(call.weight), func(*args)) if call else None
        if call is None:
            return self._resized(func, args, kwargs)
        rows = args[0].shape[:-1] if func is functional.linear else None
        return self._run(call, rows)

    def _activated(self, previous: LayerReturn, func: Any, args: tuple[Any, ...], kwargs: Any) -> Tensor | None:
        """Return the activation that a layer computed in its epilogue, and note which one follows the layer."""
        activation = activation_of(func, args, kwargs)
        if activation is None or not previous.still_holds(args[0]):
            self._followed_by.pop(previous.weight, None)
            return None
        self._followed_by[previous.weight] = activation
        return previous.activated if activation == previous.activation else None

    def _layer_call(
        self, func: Any, args: tuple[Any, ...], previous: LayerReturn | Upsampled | None
    ) -> LayerCall | None:
        """Read the call of a layer that the kernels can run, with upsampling fused if it came right before."""
        read = LAYERS.get((func, len(args)))
        call = read(*args) if read and self._has_our_weight(*args[:3]) else None
        if call is None:
            return None
        if isinstance(previous, Upsampled) and previous.still_holds(args[0]):
            fused = self.backend.fuse_upsampling(call, previous.source)
            if fused:
                return fused
        return call if self.backend.accepts(call) else None

    def _has_our_weight(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """Say whether a layer has a packed weight that is unchanged, and plain values are all that is asked for."""
        if id(weight) not in self._weights or self._more_than_values_is_asked:
            return False
        state = _state_of(weight)
        if self._states.setdefault(id(weight), state) != state:
            del self._weights[id(weight)]  # the packed form stays: a graph may read it
            return False
        return is_plain(x, self._device) and (bias is None or is_plain(bias, self._device))

    @property
    def _more_than_values_is_asked(self) -> bool:
        """Say whether gradients, other dtypes or a trace are asked for."""
        return torch.is_grad_enabled() or torch.is_autocast_enabled(self._device.type) or torch.compiler.is_compiling()

    def _are_maps(self, x: Tensor) -> bool:
        """Say whether these are plain channels-last maps, as kernels return them."""
        if self._more_than_values_is_asked or not is_plain(x, self._device) or x.ndim != 4 or x.is_neg():
            return False
        return x.is_contiguous(memory_format=torch.channels_last) and x.numel() > 0

    def _resized(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Tensor | None:
        """Upsample or max-pool maps in kernels, if this is such a call."""
        if is_upsampling(func, args, kwargs) and self._are_maps(args[0]):
            return self._upsample(args[0])
        if is_max_pooling(func, args, kwargs) and self._are_maps(args[0]):
            return self.backend.max_pool(args[0])
        return None

    def _upsample(self, x: Tensor) -> Tensor | None:
        out = self.backend.upsample(x)
        if out is not None and not out.is_inference() and not x.is_inference():  # inference mode counts no writes
            self._previous = Upsampled(weakref.ref(out), x, (out._version, x._version))
        return out

    def _run(self, call: LayerCall, rows: torch.Size | None) -> Tensor:
        """Run a layer; it returns values of these rows, or feature maps if there are none."""
        key = id(call.weight)
        bias = call.x.new_zeros(call.weight.shape[0]) if call.bias is None else contiguous(call.bias)
        activation = self._followed_by.get(key)
        output = self.backend.run(call._replace(bias=bias), self._packed_weight(call), activation)
        activated = None if output.activated is None else self._shaped(output.activated, rows)
        return self._remember(key, self._shaped(output.values, rows), activation, activated)

    def _packed_weight(self, call: LayerCall) -> Any:
        """Pack a weight when a layout of it is first needed."""
        layouts, layout = self._packed[id(call.weight)], self.backend.layout(call)
        if layout not in layouts:
            if call.x.is_cuda and torch.cuda.is_current_stream_capturing():
                raise RuntimeError("a weight must be packed before a graph uses it, not at every replay")
            layouts[layout] = self.backend.pack(call.weight, layout)
        return layouts[layout]

    def _remember(
        self, key: int, values: Tensor, activation: Activation | None = None, activated: Tensor | None = None
    ) -> Tensor:
        """Return what a layer returns, remembered for the call after it."""
        if self.backend.fuses_activations and not values.is_inference():  # inference mode counts no writes
            self._previous = LayerReturn(key, weakref.ref(values), values._version, activation, activated)
        return values

    def _shaped(self, out: Tensor, rows: torch.Size | None) -> Tensor:
        if rows is not None:
            return out.view(*rows, -1)
        maps = out.permute(0, 3, 1, 2)
        if self.channels_first or maps.shape[1] < FEWEST_CHANNELS_LAST:
            return maps.contiguous()
        return maps


def is_plain(values: Tensor, device: torch.device) -> bool:
    """Say whether these are float32 values in the device's memory: no subclass, no `torch.func`, no tangent."""
    if type(values) not in (Tensor, nn.Parameter) or values.layout != torch.strided or values.is_nested:
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(values) or unpack_dual(values).tangent is not None
    return values.dtype == torch.float32 and values.device == device and not wrapped


def _state_of(weight: Tensor) -> tuple[int, int]:
    """Return a weight's address and version, which show changes; inference mode keeps no version."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version
