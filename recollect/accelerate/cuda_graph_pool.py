"""Memory for CUDA graphs, handed on from one recovery to the next.

PyTorch keeps what a graph uses from all else, and long after the graph is gone. With memory of its own each recovery
would leave some behind, and ask the driver for more, which takes a third of the time of a capture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from recollect.devices.cuda_graph import CapturedStep, capture
from recollect.devices.memory import held

MOST = 2**28  # bytes that stay with a thread until its next recovery

Returned = TypeVar("Returned")

_idle = threading.local()


class CudaGraphPool:
    """A pool that graphs may share, as long as one is replayed after another: also those of a later recovery."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.renew()

    @classmethod
    def take(cls, device: torch.device) -> CudaGraphPool:
        """What this thread's last recovery has given back, or new. One that failed gives nothing back: the device may
        still be at work in it."""
        return vars(_idle).pop(str(device), None) or cls(device)

    def give_back(self) -> None:
        self.trim()
        setattr(_idle, str(self.device), self)

    def renew(self) -> None:
        """Go on with other memory; this one is PyTorch's once its graphs are gone."""
        self._pool: Any = None
        self._keeper: CapturedStep[torch.Tensor] | None = None
        self._bytes = 0

    def trim(self) -> None:
        """Keep no more than a little."""
        if self._bytes > MOST:
            self.renew()

    def capture(self, step: Callable[[], Returned]) -> CapturedStep[Returned]:
        """Capture a step in this memory; after an error other memory is used."""
        try:
            if self._keeper is None:
                self._keep()
            before = held(self.device).reserved
            captured = capture(step, self.device, self._pool)
        except RuntimeError:
            self.renew()
            raise
        self._bytes += max(0, held(self.device).reserved - before)  # about: other threads may have taken some too
        return captured

    def _keep(self) -> None:
        """Keep a small graph: a pool takes no other graph once all of its graphs are gone."""
        self._pool = torch.cuda.graph_pool_handle()
        self._keeper = capture(lambda: torch.zeros(1, device=self.device), self.device, self._pool)
