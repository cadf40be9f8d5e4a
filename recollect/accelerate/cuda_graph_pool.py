"""Memory for CUDA graphs, reused from one recovery to the next.

PyTorch reserves a graph's memory for that graph, and keeps it long after the graph is gone. Without reuse each recovery
would leave some behind and ask the driver for more, which takes a third of the time of a capture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recollect.devices.memory import held
from recollect.devices.streams import side_streams

MOST_KEPT = 2**28  # bytes that a thread keeps until its next recovery

_idle = threading.local()

Step = Callable[[], Tensor]


class Captured(NamedTuple):
    """A graph of a step, and the memory that holds what the step returns after each replay."""

    graph: torch.cuda.CUDAGraph
    returned: Tensor


class CudaGraphPool:
    """A memory pool that graphs share, also those of a later recovery; one is replayed after another."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.renew()

    @classmethod
    def take(cls, device: torch.device) -> CudaGraphPool:
        """Take the pool that this thread's last recovery gave back, or a new one.

        A recovery that failed gives nothing back: the device may still be writing to its pool.
        """
        return vars(_idle).pop(str(device), None) or cls(device)

    def give_back(self) -> None:
        self.trim()
        setattr(_idle, str(self.device), self)

    def renew(self) -> None:
        """Use new memory from now on; PyTorch frees the old once its graphs are gone."""
        self.reserved = 0  # bytes, by captures
        self._handle: Any = None
        self._keeper: Captured | None = None

    def trim(self) -> None:
        """Renew the memory if it has grown large."""
        if self.reserved > MOST_KEPT:
            self.renew()

    def capture(self, step: Step) -> Captured:
        """Capture a step in this memory. After an error the memory is new, and the device works as before."""
        try:
            if self._keeper is None:
                self._keep()
            before = held(self.device).reserved
            captured = self._record(step)
        except RuntimeError:
            self._recover()
            raise
        self.reserved += max(0, held(self.device).reserved - before)  # roughly: other threads may have reserved some
        return captured

    def _keep(self) -> None:
        """Keep a small graph: a pool whose graphs are all gone takes no other."""
        self._handle = torch.cuda.graph_pool_handle()
        self._keeper = self._record(lambda: torch.zeros(1, device=self.device))

    def _record(self, step: Step) -> Captured:
        graph = torch.cuda.CUDAGraph()
        with on_capture_stream(self.device):
            graph.capture_begin(self._handle, capture_error_mode="thread_local")
            try:
                returned = step()
            finally:
                graph.capture_end()
        return Captured(graph, returned)

    def _recover(self) -> None:
        """Undo what a failed capture leaves behind in PyTorch."""
        with suppress(RuntimeError, AttributeError, TypeError):  # nothing was begun, or PyTorch has no such function
            torch._C._cuda_endAllocateToPool(self.device.index, self._handle)  # before 2.12 allocations still go there
        self.renew()
        with suppress(RuntimeError):
            self._keep()  # random numbers fail after a failed capture, until one succeeds


@contextmanager
def on_capture_stream(device: torch.device) -> Iterator[None]:
    """Run on this thread's stream for captures, in order with the work before and after."""
    stream = side_streams(device).capturing
    stream.wait_stream(torch.cuda.current_stream(device))
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        torch.cuda.current_stream(device).wait_stream(stream)
