"""The outline of a network: its modules and the shapes of its weights, without memory for the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class _TooManyWeights(Exception):
    """The network has more weights than it may have."""


class _Counted(TorchFunctionMode):
    """Counts tensors that are made and their elements, and stops at a number."""

    def __init__(self, most_tensors: int, most_elements: int) -> None:
        super().__init__()
        self.tensors, self.elements = most_tensors, most_elements

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.empty and isinstance(made, Tensor):
            self.tensors -= 1
            self.elements -= made.numel()
            if self.tensors < 0 or self.elements < 0:
                raise _TooManyWeights
        return made


def outline_within(tensors: int, elements: int, build: Callable[[], nn.Module]) -> nn.Module | None:
    """Build the outline of a network; None if it makes far more tensors or elements, some of which it may drop."""
    try:
        with torch.device("meta"), _Counted(2 * tensors + 64, 2 * elements + 10**6):
            return build()
    except _TooManyWeights:
        return None
