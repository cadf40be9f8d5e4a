"""A first call of a network: what it makes of a few images, and what it does on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from recollect.devices.precision import apply_checked

READS_BACK = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
COPIES = {torch.ops.aten._to_copy, torch.ops.aten.copy_}


class Probe(NamedTuple):
    """The outcome of a first call."""

    images: Tensor
    outputs: Tensor
    changes_input: bool  # found by comparing: tensor versions miss writes through `.data` or numpy
    waits: str  # the operation for which the host waits for a GPU, if there is one


def probe_network(f: Callable[[Tensor], Tensor], images: Tensor, may_wait: bool = True) -> Probe:
    """Call f once; a network that is known not to wait for a GPU is not watched for it, which takes time."""
    waits = ""
    is_watched = may_wait and images.device.type == "cuda"
    try:
        with RefuseToWait() if is_watched else nullcontext():
            outputs = apply_checked(f, given := images.clone())
    except Waits as operation:
        outputs, waits = apply_checked(f, given := images.clone()), str(operation)
    return Probe(images, outputs, not torch.equal(given, images), waits)


class Waits(Exception):
    """An operation makes the host wait for the device; it cannot be captured in a CUDA graph."""


class RefuseToWait(TorchDispatchMode):
    """Raise `Waits` at operations that read values on the host or copy between host and device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        copies_across = func.overloadpacket in COPIES and len(_device_types(args, kwargs, out)) > 1
        if copies_across or not READS_BACK.isdisjoint(func.tags):
            raise Waits(str(func))
        return out


def _device_types(*values: Any) -> set[str]:
    return {t.device.type for t in tree_leaves(values) if isinstance(t, Tensor)}


def is_known_code(modules: Sequence[nn.Module]) -> bool:
    """Say whether a network is made of PyTorch's modules and ours alone.

    These keep nothing of what they compute, and hardly any waits for a GPU. So even the very first call with some
    number of images may be captured.
    """
    return bool(modules) and all(_is_known(module) for module in modules)


def _is_known(module: nn.Module) -> bool:
    known_class = type(module).__module__.startswith(("torch.nn.modules.", "recollect."))
    was_given_a_function = any(callable(value) for value in vars(module).values())  # such as another `forward`
    return known_class and not was_given_a_function


def is_compiled(module: nn.Module) -> bool:
    wrapped = hasattr(module, "_orig_mod") or module._compiled_call_impl is not None
    return wrapped or isinstance(module, torch.jit.ScriptModule)


def values_out_of_range(image: Tensor) -> Tensor:
    """Make an image of this shape with values from -2 to 3, which a network may clamp in place."""
    return torch.linspace(-2, 3, image.numel(), dtype=image.dtype, device=image.device).view(image.shape)
