"""Capture a step as a CUDA graph: one launch in place of one for every kernel."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from recollect.devices.streams import side_streams

Returned = TypeVar("Returned")

_pausing = threading.Lock()
_pauses = 0  # running captures, in all threads
_was_enabled = True  # garbage collection, before the first of them


class CapturedStep(NamedTuple, Generic[Returned]):
    """A graph of a step, and what the step returned: its tensors hold new values after each replay."""

    graph: torch.cuda.CUDAGraph
    returned: Returned

    def replay(self) -> None:
        self.graph.replay()


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


def warm_up(step: Callable[[], object], device: torch.device, times: int = 1) -> None:
    """Run a step eagerly on the capture stream: libraries and modules set themselves up, which no capture allows."""
    with on_capture_stream(device):
        for _ in range(times):
            step()


def capture(step: Callable[[], Returned], device: torch.device, pool: Any = None) -> CapturedStep[Returned]:
    """Record what a step launches, without running it, in the memory `pool` (one of its own by default).

    The step must have run before (`warm_up`) unless it sets nothing up. An error inside passes through, and the device
    then works as before. A shared `pool` must not be used again after an error.
    """
    pool = torch.cuda.graph_pool_handle() if pool is None else pool
    try:
        with on_capture_stream(device):
            return _record(step, pool)
    except RuntimeError:
        _recover(device, pool)
        raise


def _record(step: Callable[[], Returned], pool: Any) -> CapturedStep[Returned]:
    graph = torch.cuda.CUDAGraph()
    with garbage_collection_paused():
        graph.capture_begin(pool, capture_error_mode="thread_local")
        try:
            returned = step()
        finally:
            graph.capture_end()
    return CapturedStep(graph, returned)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Collect no garbage meanwhile, in any thread.

    A collection can reach a graph of an earlier recovery. CUDA refuses to destroy a graph in a thread that captures:
    PyTorch then warns, and the capture fails.
    """
    global _pauses, _was_enabled
    with _pausing:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pausing:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()


def _recover(device: torch.device, pool: Any) -> None:
    """Undo what a failed capture leaves behind in PyTorch."""
    with suppress(RuntimeError, AttributeError, TypeError):  # nothing was begun, or PyTorch has no such function
        torch._C._cuda_endAllocateToPool(device.index, pool)  # before 2.12 allocations still go to the pool
    with suppress(RuntimeError), on_capture_stream(device):
        # Random numbers fail after a failed capture, until one succeeds.
        _record(lambda: torch.zeros(1, device=device), torch.cuda.graph_pool_handle())
