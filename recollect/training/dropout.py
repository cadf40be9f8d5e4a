"""Dropout that draws by the number of the step: a resumed run draws the same, and nobody else's draws change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

STRIDE = 1_000_003  # between the seeds of two steps


class Dropout:
    """The dropout layers of a network: off, but within `drawing`."""

    def __init__(self, network: nn.Module, seed: int, device: torch.device) -> None:
        self._layers = [m for m in network.modules() if isinstance(m, nn.Dropout) and m.p > 0]
        self._seed, self._devices = seed, [device] if device.type == "cuda" else []
        self._set(on=False)

    def __bool__(self) -> bool:
        return bool(self._layers)

    @contextmanager
    def drawing(self, step: int) -> Iterator[None]:
        """Drop values for one step."""
        if not self._layers:
            yield
            return
        with torch.random.fork_rng(self._devices):
            torch.manual_seed(self._seed + STRIDE * (step + 1))
            self._set(on=True)
            try:
                yield
            finally:
                self._set(on=False)

    def _set(self, *, on: bool) -> None:
        for layer in self._layers:
            layer.train(on)
