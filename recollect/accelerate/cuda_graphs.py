"""Replay a step on fixed buffers as a CUDA graph: one launch in place of one for every layer, and the same bits.

Captures take time, so graphs are kept only of steps that spend most of theirs on launches.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor

from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.devices.cuda_graph import CapturedStep, on_capture_stream, warm_up

LAUNCH_SHARE = 0.6  # of a step's time; where launching takes less, the device is the bottleneck

log = logging.getLogger(__name__).info

Step = Callable[[], Tensor]
State = Sequence[Tensor]  # what a step changes; the first tensor has a row for each image
Captured = CapturedStep[Tensor]


class CudaGraphs:
    """One graph for each of a few small batch sizes, captured at the first batch of that size.

    There are none once a step could not be captured, or its graph did something else. Batches from the first size at
    which launches were hidden behind the device's work run eagerly. Steps of `known` code, which keep nothing of what
    they compute, may be captured before they have ever run.
    """

    def __init__(self, pool: CudaGraphPool, unit: int = 8, known: bool = False) -> None:
        self._pool, self._device, self._unit, self._known = pool, pool.device, unit, known
        self._usable = True
        self._large: float = math.inf  # the smallest batch size known to need no graph
        self.launch_share = LAUNCH_SHARE
        self.forget()

    def size_for(self, images: int) -> int:
        """Round a batch up: to whole units, or by at most a sixteenth.

        This holds for batches too large for a graph as well. The time that a step takes must not decide its size, and
        with it the last bits.
        """
        if not self._usable:
            return images
        unit = max(self._unit, 2 ** (images.bit_length() - 1) // 16)
        return -(-images // unit) * unit

    def forget(self) -> None:
        """Drop all graphs, for example because the buffers have moved."""
        self._graphs: dict[int, Captured] = {}  # in one pool: what one returned is read before another runs
        self._pool.trim()

    def run(self, step: Step, state: State, times: int) -> int:
        """Take the steps that graphs can take, and return how many."""
        size = len(state[0])
        if not self._usable or times < 2 or size >= self._large:
            return 0
        taken = 0 if size in self._graphs else self._first_steps(step, state, times)
        if size not in self._graphs:
            return taken
        for _ in range(times - taken):
            self._graphs[size].replay()
        return times

    def once_more(self, size: int) -> Tensor | None:
        """Replay one more step of a batch of this size and return its result; None if there is no graph of it.

        The result is valid until the next replay.
        """
        if size not in self._graphs:
            return None
        self._graphs[size].replay()
        return self._graphs[size].returned

    def _first_steps(self, step: Step, state: State, times: int) -> int:
        """Take the first steps of a batch size in a graph, and return how many: none if it does something else."""
        start = _copied(state)
        try:
            taken = self._try_graph(step, state, times)
        except RuntimeError as error:  # one of the network itself comes up again
            self._give_up(f"capturing it failed ({error})")
            taken = 0
        if not taken:
            _restore(state, start)
        return taken

    def _try_graph(self, step: Step, state: State, times: int) -> int:
        """Capture, replay and compare; keep the graph if launches take most of a step's time.

        Replays are queued before the comparison, so that the device has work while the host launches the eager step.
        """
        captured, capture_seconds = self._capture(step, state)
        step_seconds = self._replay_timed(captured)
        ahead = min(times - 2, math.ceil(capture_seconds / step_seconds))
        for _ in range(ahead):
            captured.replay()
        same, launch_seconds = self._compare(captured, step, state)
        if not same:
            self._give_up("a replay gave other values: the network draws at random, keeps a state or changes its input")
            return 0
        if launch_seconds >= self.launch_share * step_seconds:
            self._graphs[len(state[0])] = captured
        else:
            self._large = min(self._large, len(state[0]))
            self._pool.trim()
        return ahead + 2

    def _capture(self, step: Step, state: State) -> tuple[Captured, float]:
        """Capture a step, timed; `state` stays as it is.

        The step first runs eagerly unless its code is known. Libraries, and networks that keep something for each
        size, set themselves up then. In a capture that fails they would keep what was never computed.
        """
        if self._known:
            with suppress(RuntimeError):
                return self._capture_timed(step)
        before = _copied(state)
        warm_up(step, self._device)
        _restore(state, before)
        return self._capture_timed(step)

    def _capture_timed(self, step: Step) -> tuple[Captured, float]:
        began = time.perf_counter()
        captured = self._pool.capture(step)
        return captured, time.perf_counter() - began

    def _replay_timed(self, captured: Captured) -> float:
        stream = torch.cuda.current_stream(self._device)
        stream.synchronize()
        began = time.perf_counter()
        captured.replay()
        stream.synchronize()
        return time.perf_counter() - began

    def _compare(self, captured: Captured, step: Step, state: State) -> tuple[bool, float]:
        """Compare a replay to an eager step, in its state and its result; return also how long launching took."""
        before = _copied(state)
        began = time.perf_counter()
        with on_capture_stream(self._device):
            expected = step()
        launch_seconds = time.perf_counter() - began
        after = [*_copied(state), expected]
        _restore(state, before)
        captured.replay()
        replayed = [*state, captured.returned]
        same = all(torch.equal(_bits(ours), _bits(its)) for ours, its in zip(replayed, after, strict=True))
        return same, launch_seconds

    def _give_up(self, why: str) -> None:
        if self._usable:
            log("Recovery runs without a CUDA graph: %s.", why)
        self._usable = False
        self.forget()


def _copied(state: State) -> State:
    return [values.clone() for values in state]


def _restore(state: State, before: State) -> None:
    for values, old in zip(state, before, strict=True):
        values.copy_(old)


def _bits(values: Tensor) -> Tensor:
    return values.contiguous().view(torch.uint8)  # NaN equals itself
