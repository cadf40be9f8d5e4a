"""Memory for CUDA graphs, reused from one recovery to the next.

PyTorch reserves a graph's memory for that graph, and keeps it long after the graph is gone. Without reuse each recovery
would leave some behind and ask the driver for more, which takes a third of the time of a capture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from recollect.devices.cuda_graph import CapturedStep, capture
from recollect.devices.memory import pytorch_memory

MOST_KEPT = 2**28  # bytes that a thread keeps until its next recovery

_idle = threading.local()


class CudaGraphPool:
    """A memory pool that graphs share, also those of a later recovery; one is replayed after another."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.renew()

    @classmethod
    def take(cls, device: torch.device) -> CudaGraphPool:
        """Take the pool that this thread's last recovery returned, or a new one.

        A recovery that failed returns nothing: the device may still be writing to its pool.
        """
        return vars(_idle).pop(str(device), None) or cls(device)

    def release(self) -> None:
        self.trim()
        setattr(_idle, str(self.device), self)

    def renew(self) -> None:
        """Use new memory from now on; PyTorch frees the old once its graphs are gone."""
        self.reserved = 0  # bytes, by captures
        self._handle: Any = None
        self._keeper: CapturedStep[Tensor] | None = None

    def trim(self) -> None:
        """Renew the memory if it has grown large."""
        if self.reserved > MOST_KEPT:
            self.renew()

    def capture(self, step: Callable[[], Tensor]) -> CapturedStep[Tensor]:
        """Capture a step in this memory. After an error the memory is new, and the device works as before."""
        try:
            if self._keeper is None:
                self._keep()
            before = pytorch_memory(self.device).reserved
            captured = capture(step, self.device, self._handle)
        except RuntimeError:
            self.renew()
            raise
        after = pytorch_memory(self.device).reserved
        self.reserved += max(0, after - before)  # roughly: other threads may have reserved some
        return captured

    def _keep(self) -> None:
        """Keep a small graph: a pool whose graphs are all gone takes no other."""
        self._handle = torch.cuda.graph_pool_handle()
        self._keeper = capture(lambda: torch.zeros(1, device=self.device), self.device, self._handle)
