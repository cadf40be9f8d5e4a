"""Keep modules in eval mode while any thread needs it: a mode belongs to the module, which threads may share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


class _Held:
    """A module that was in train mode, and how many callers need it in eval mode."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module  # kept alive, so that its id stays its own
        self.callers = 0


_held: dict[int, _Held] = {}
_lock = threading.Lock()


@contextmanager
def eval_mode(network: nn.Module) -> Iterator[None]:
    """Put a module and its parts in eval mode; the last caller to leave restores the mode of each part."""
    parts = _enter(network)
    try:
        yield
    finally:
        _leave(parts)


def _enter(network: nn.Module) -> list[int]:
    """Count this caller for every part that is, or was before others came, in train mode."""
    parts = []
    with _lock:
        for module in network.modules():
            if id(module) in _held or getattr(module, "training", False):  # a frozen TorchScript module has no mode
                held = _held.setdefault(id(module), _Held(module))
                held.callers += 1
                module.training = False
                parts.append(id(module))
    return parts


def _leave(parts: list[int]) -> None:
    with _lock:
        for part in parts:
            held = _held[part]
            held.callers -= 1
            if not held.callers:
                held.module.training = True
                del _held[part]
