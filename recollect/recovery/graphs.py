"""A step on fixed buffers as a CUDA graph: one launch instead of one for every layer, where it gives the same bits.

Captures take time, so there are graphs only of steps that spend theirs on launches.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from recollect.recovery.streams import side_streams

READS_BACK = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
COPIES = {torch.ops.aten._to_copy, torch.ops.aten.copy_}
LAUNCHING = 0.6  # where launching takes less than this share of a step's time, the device is what is waited for

note = logging.getLogger(__name__).info


Step = Callable[[], Tensor]


class Captured(NamedTuple):
    """A graph of a step, and the memory that what the step returns lies in after each replay."""

    graph: torch.cuda.CUDAGraph
    returned: Tensor


class Graphs:
    """One graph for each of few small batch sizes, captured when first met; none once a capture has failed or differed.

    Larger batches, from the first size at which launches were seen to be hidden behind the work, run eagerly.
    """

    def __init__(self, device: torch.device, unit: int = 8) -> None:
        self._device, self._stream, self._unit = device, side_streams(device).capturing, unit
        self._tried, self._usable = False, True
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
        self._graphs: dict[int, Captured] = {}
        self._pool = torch.cuda.graph_pool_handle()  # shared: what one has returned is used before another runs

    def run(self, step: Step, state: Tensor, times: int) -> int:
        """Take the steps that graphs can take; returns how many. `state` is what a step changes."""
        size = len(state)
        if not self._usable or times < 2 or size >= self._large:
            return 0
        taken = 0 if size in self._graphs else self._meet(step, state)
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

    def _meet(self, step: Step, state: Tensor) -> int:
        """The first steps of a batch size, taken eagerly, and a graph of one if that is worth it; returns how many."""
        taken = 0
        if not self._tried:
            self._tried = True
            if not self._try(step, state):
                return 1
            taken = 1
        before = state.clone()
        returned, busy = self._keeps_busy(step)
        if busy:
            self._large = min(self._large, len(state))
        else:
            self._capture(step, state, before, returned)
        return taken + 1

    def _try(self, step: Step, state: Tensor) -> bool:
        """Take the very first step, which also lets libraries set themselves up; whether graphs can be had of it."""
        before = state.clone()
        try:
            with self._aside(), NoWaiting():
                step()
        except Waits as waits:
            self._give_up(f"the network waits for the device ({waits})")
            state.copy_(before)
            step()
        return self._usable

    def _keeps_busy(self, step: Step) -> tuple[Tensor, bool]:
        """What a step returns, and whether the device works on it for long after the host has launched it all."""
        torch.cuda.current_stream(self._device).synchronize()
        began = time.perf_counter()
        with self._aside():
            returned = step()
        launched = time.perf_counter()
        self._stream.synchronize()
        return returned, launched - began < LAUNCHING * (time.perf_counter() - began)

    def _capture(self, step: Step, state: Tensor, before: Tensor, expected: Tensor) -> None:
        """Capture the step from `before` to `state` and take it again: only a graph with the same outcome is kept, and
        that returns what is `expected`."""
        after = state.clone()
        graph = torch.cuda.CUDAGraph()
        try:
            returned = self._record(graph, step)
            state.copy_(before)
            graph.replay()
            same = torch.equal(_bits(state), _bits(after)) and torch.equal(_bits(returned), _bits(expected))
        except RuntimeError as error:
            self._give_up(f"capturing it failed ({error})")
            with suppress(RuntimeError):  # random numbers work again only after a capture has ended well
                self._record(torch.cuda.CUDAGraph(), state.zero_)
            same = False
        if same:
            self._graphs[len(state)] = Captured(graph, returned)
        else:
            self._give_up("a replay gave other values: the network draws at random or keeps a state")
            state.copy_(after)

    def _record(self, graph: torch.cuda.CUDAGraph, work: Step) -> Tensor:
        with self._aside():
            graph.capture_begin(self._pool, capture_error_mode="thread_local")
            try:
                return work()
            finally:
                graph.capture_end()

    def _give_up(self, why: str) -> None:
        if self._usable:
            note("Recovery goes on without a CUDA graph: %s.", why)
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


class Waits(Exception):
    """An operation that needs the host to wait for the device cannot be captured, and trying leaves traces."""


class NoWaiting(TorchDispatchMode):
    """Inside, operations raise `Waits` that read values back to the host or copy between it and the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        moves = func.overloadpacket in COPIES and len(_kinds_of_device(args, kwargs, out)) > 1
        if moves or not READS_BACK.isdisjoint(func.tags):
            raise Waits(str(func))
        return out


def _kinds_of_device(*values: Any) -> set[str]:
    return {t.device.type for t in tree_leaves(values) if isinstance(t, Tensor)}


def _bits(values: Tensor) -> Tensor:
    return values.contiguous().view(torch.uint8)  # equal also where not a number
