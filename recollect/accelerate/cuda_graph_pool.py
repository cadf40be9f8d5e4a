"""Memory for CUDA graphs, handed on from one recovery to the next.

PyTorch keeps what a graph uses from all else, and long after the graph is gone. With memory of its own each recovery
would leave some behind, and ask the driver for more, which takes a third of the time of a capture.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from recollect.devices.memory import held
from recollect.devices.streams import side_streams

MOST = 2**28  # bytes that stay with a thread until its next recovery

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
        self._keeper: torch.cuda.CUDAGraph | None = None
        self._bytes = 0

    def trim(self) -> None:
        """Keep no more than a little."""
        if self._bytes > MOST:
            self.renew()

    @contextmanager
    def capturing(self, graph: torch.cuda.CUDAGraph) -> Iterator[None]:
        """Inside, in a side stream, work is captured and takes memory here."""
        if self._keeper is None:
            self._keep()
        before = held(self.device).reserved
        with _capturing(graph, self._pool):
            yield
        self._bytes += max(0, held(self.device).reserved - before)  # about: other threads may have taken some too

    def _keep(self) -> None:
        """A small graph that stays: once all of a pool's graphs are gone, it takes no other."""
        self._pool, keeper = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph()
        with torch.cuda.stream(side_streams(self.device).capturing), _capturing(keeper, self._pool):
            torch.zeros(1, device=self.device)
        self._keeper = keeper

    def clear_up(self) -> None:
        """After a capture that failed."""
        with suppress(RuntimeError, AttributeError, TypeError):  # none was there yet, or PyTorch has no such function
            torch._C._cuda_endAllocateToPool(self.device.index, self._pool)  # before 2.12 it believes that it goes on
        self.renew()
        with suppress(RuntimeError):
            self._keep()  # random numbers work again once a capture has ended well


@contextmanager
def _capturing(graph: torch.cuda.CUDAGraph, pool: Any) -> Iterator[None]:
    graph.capture_begin(pool, capture_error_mode="thread_local")
    try:
        yield
    finally:
        graph.capture_end()
