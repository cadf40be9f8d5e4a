"""A first look at a network: what it makes of a few images, and what it does on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from recollect.devices.precision import apply_checked

READS_BACK = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
COPIES = {torch.ops.aten._to_copy, torch.ops.aten.copy_}


class Look(NamedTuple):
    images: Tensor
    outcome: Tensor
    changes_input: bool  # by whatever way: no version tells of `.data` or numpy
    waits: str  # the operation for which the host waits for a GPU, if there is one


def look_at(f: Callable[[Tensor], Tensor], images: Tensor, may_wait: bool = True) -> Look:
    """Whether it waits is not looked at, which takes time, where it is known that it does not."""
    waits = ""
    try:
        with NoWaiting() if may_wait and images.device.type == "cuda" else nullcontext():
            outcome = apply_checked(f, given := images.clone())
    except Waits as operation:
        outcome, waits = apply_checked(f, given := images.clone()), str(operation)
    return Look(images, outcome, not torch.equal(given, images), waits)


class Waits(Exception):
    """An operation that needs the host to wait for the device cannot be captured, and trying leaves traces."""


class NoWaiting(TorchDispatchMode):
    """Inside, operations raise `Waits` that read values back to the host or copy between it and the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        moves = func.overloadpacket in COPIES and len(_kinds_of_device(args, kwargs, out)) > 1
        if moves or not READS_BACK.isdisjoint(func.tags):
            raise Waits(str(func))
        return out


def _kinds_of_device(*values: Any) -> set[str]:
    return {t.device.type for t in tree_leaves(values) if isinstance(t, Tensor)}
