"""A step on fixed buffers as a CUDA graph: one launch instead of one for every layer, where it gives the same bits.

Captures take time, so graphs are kept only of steps that spend theirs on launches.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import torch
from torch import Tensor

from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.devices.streams import side_streams

LAUNCHING = 0.6  # where launching takes less than this share of a step's time, the device is what is waited for

log = logging.getLogger(__name__).info


Step = Callable[[], Tensor]


class Captured(NamedTuple):
    """A graph of a step, and the memory that what the step returns lies in after each replay."""

    graph: torch.cuda.CUDAGraph
    returned: Tensor


class CudaGraphs:
    """One graph for each of few small batch sizes, captured when first met; none once a step could not be captured, or
    a graph of it did something else.

    Larger batches, from the first size at which launches were seen to be hidden behind the work, run eagerly. Steps
    that are `known` to keep nothing of what they compute may be captured before they have ever run.
    """

    def __init__(self, memory: CudaGraphPool, unit: int = 8, known: bool = False) -> None:
        self._memory, self._device, self._unit, self._known = memory, memory.device, unit, known
        self._stream = side_streams(memory.device).capturing
        self._usable = True
        self._large: float = math.inf  # the smallest batch size known to need no graph
        self.forget()

    def size_for(self, images: int) -> int:
        """The batch size that these images are filled up to: at most a sixteenth more, or to whole units. Also where
        they are too many for a graph: how long a step takes must not decide its size, and with it the last bits."""
        if not self._usable:
            return images
        unit = max(self._unit, 2 ** (images.bit_length() - 1) // 16)
        return -(-images // unit) * unit

    def forget(self) -> None:
        """Drop all graphs, for one because the buffers have moved."""
        self._graphs: dict[int, Captured] = {}  # in one memory: what one has returned is used before another runs
        self._memory.trim()

    def run(self, step: Step, state: Tensor, times: int) -> int:
        """Take the steps that graphs can take; returns how many. `state` is what a step changes."""
        size = len(state)
        if not self._usable or times < 2 or size >= self._large:
            return 0
        taken = 0 if size in self._graphs else self._meet(step, state, times)
        if size not in self._graphs:
            return taken
        for _ in range(times - taken):
            self._graphs[size].graph.replay()
        return times

    def once_more(self, size: int) -> Tensor | None:
        """Take one more step of a batch of this size and say what it returned, which stays until another one is taken;
        nothing where there is no graph of it."""
        if size not in self._graphs:
            return None
        self._graphs[size].graph.replay()
        return self._graphs[size].returned

    def _meet(self, step: Step, state: Tensor, times: int) -> int:
        """The first steps of a batch size, by a graph; returns how many, and none if it does not do what a step does.
        It is kept where launching is what takes time."""
        start = state.clone()
        try:
            taken = self._take_first(step, state, times)
        except RuntimeError as error:  # a network's own comes up again
            self._give_up(f"capturing it failed ({error})")
            taken = 0
        if not taken:
            state.copy_(start)
        return taken

    def _take_first(self, step: Step, state: Tensor, times: int) -> int:
        """Whether the graph does what a step does is seen while the device has others to take."""
        captured, seconds = self._capture(step, state)
        working = self._replay_timed(captured)
        ahead = min(times - 2, math.ceil(seconds / working))
        for _ in range(ahead):
            captured.graph.replay()
        same, launching = self._compare(captured, step, state)
        if not same:
            self._give_up("a replay gave other values: the network draws at random, keeps a state or changes its input")
            return 0
        if launching >= LAUNCHING * working:
            self._graphs[len(state)] = captured
        else:
            self._large = min(self._large, len(state))
            self._memory.trim()
        return ahead + 2

    def _capture(self, step: Step, state: Tensor) -> tuple[Captured, float]:
        """A graph of the step, and how long that took; `state` is as before. After an eager step nothing is left to be
        set up, by libraries for a new size or by a network that keeps something for each: in a capture that fails it
        would keep what was never computed."""
        if self._known:
            with suppress(RuntimeError):
                return self._record(step)
        before = state.clone()
        with self._aside():
            step()
        state.copy_(before)
        return self._record(step)

    def _record(self, step: Step) -> tuple[Captured, float]:
        graph = torch.cuda.CUDAGraph()
        with self._aside():
            began = time.perf_counter()
            try:
                with self._memory.capturing(graph):
                    returned = step()
            except RuntimeError:
                self._memory.clear_up()
                raise
        return Captured(graph, returned), time.perf_counter() - began

    def _replay_timed(self, captured: Captured) -> float:
        stream = torch.cuda.current_stream(self._device)
        stream.synchronize()
        began = time.perf_counter()
        captured.graph.replay()
        stream.synchronize()
        return time.perf_counter() - began

    def _compare(self, captured: Captured, step: Step, state: Tensor) -> tuple[bool, float]:
        """Whether the graph changes the state as a step does and returns the same, and how long launching one takes."""
        before = state.clone()
        began = time.perf_counter()
        with self._aside():
            expected = step()
        launching = time.perf_counter() - began
        after = state.clone()
        state.copy_(before)
        captured.graph.replay()
        same = torch.equal(_bits(state), _bits(after)) and torch.equal(_bits(captured.returned), _bits(expected))
        return same, launching

    def _give_up(self, why: str) -> None:
        if self._usable:
            log("Recovery runs without a CUDA graph: %s.", why)
        self._usable = False
        self.forget()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """On a stream of its own, as captures have to be, in order with what comes before and after."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)


def _bits(values: Tensor) -> Tensor:
    return values.contiguous().view(torch.uint8)  # equal also where not a number
