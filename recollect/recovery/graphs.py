"""A step on fixed buffers as a CUDA graph: one launch instead of one for every layer, where it gives the same bits."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from recollect.recovery.running import Ready

note = logging.getLogger(__name__).info


class Graphs:
    """One graph for each of few batch sizes, captured when first met; none once a capture has failed or differed."""

    def __init__(self, f: Ready, step: Callable[[int], None]) -> None:
        self._device, self._step = f.device, step
        self._stream = torch.cuda.Stream(f.device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()  # shared: graphs run one after another and keep nothing inside
        self._usable = True

    def size_for(self, images: int) -> int:
        """The batch size that these images are filled up to: at most a sixteenth more, or eight."""
        if not self._usable:
            return images
        unit = max(8, 2 ** (images.bit_length() - 1) // 16)
        return -(-images // unit) * unit

    def forget(self) -> None:
        """The buffers have moved."""
        self._graphs.clear()

    def run(self, size: int, steps: int, state: Tensor) -> int:
        """Take the steps that graphs can take; returns how many. `state` is the buffer that a step changes."""
        if not self._usable or steps < 1:
            return 0
        taken = 0
        if size not in self._graphs:
            self._capture(size, state[:size])
            taken = 1
        if size in self._graphs:
            for _ in range(steps - taken):
                self._graphs[size].replay()
            taken = steps
        return taken

    def _capture(self, size: int, state: Tensor) -> None:
        """Take one step eagerly, then capture it and take it again: only a graph with the same outcome is kept."""
        before = state.clone()
        with self._aside(), _no_waiting_for_the_device():
            try:
                self._step(size)  # also lets libraries set themselves up outside of the capture
                waits = None
            except RuntimeError as error:
                waits = error
        if waits is not None:
            self._give_up(f"the network cannot run without waiting for the device ({waits})")
            state.copy_(before)
            self._step(size)  # an error of the network's own is raised here
            return
        after = state.clone()
        graph = torch.cuda.CUDAGraph()
        try:
            with self._aside():
                graph.capture_begin(self._pool, capture_error_mode="thread_local")
                try:
                    self._step(size)
                finally:
                    graph.capture_end()
            state.copy_(before)
            graph.replay()
            same = torch.equal(_bits(state), _bits(after))
        except RuntimeError as error:
            same = False
            self._give_up(f"capturing it failed ({error})")
        if same:
            self._graphs[size] = graph
        else:
            self._give_up("a replay gave other values: the network draws at random or keeps a state")
            state.copy_(after)

    def _give_up(self, why: str) -> None:
        if self._usable:
            note("Recovery goes on without a CUDA graph: %s.", why)
        self._usable = False
        self._graphs.clear()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """On a stream of its own, as captures have to be, in order with what comes before and after."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.current_stream(self._device).wait_stream(self._stream)


@contextmanager
def _no_waiting_for_the_device() -> Iterator[None]:
    """What reads a value back to the host raises an error: it could not be captured, and trying leaves traces."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this switch a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _bits(values: Tensor) -> Tensor:
    return values.view(torch.uint8)  # equal also where not a number
