"""Seconds, memory, and the speed of the network alone."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from baseline_recovery import Network
from torch import Tensor

from recollect.devices.cuda_graph import capture, warm_up

CONTENDERS = ["one_by_one", "batched", "recollect"]  # (a), (b), (c)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_clock = CLOCKS["wall"]


def use_clock(name: str) -> None:
    """Choose which seconds count: wall time, or the CPU time of this process on a shared machine."""
    global _clock
    _clock = CLOCKS[name]


@dataclass(frozen=True)
class Measured:
    """The result of a run, its seconds and peak memory, and the share of the whole task that was run."""

    value: Any
    seconds: float
    peak: int
    image_steps: int = 0
    share: float = 1.0
    part: str = ""  # what was run, if not the whole task

    def describe(self, image_steps: int | None = None) -> dict[str, Any]:
        steps = self.image_steps if image_steps is None else image_steps
        described: dict[str, Any] = {
            "seconds": self.seconds / self.share, "measured_seconds": self.seconds, "measured_share": self.share,
            "image_steps_per_second": steps / self.seconds, "peak_bytes": self.peak,
        }  # fmt: skip
        if self.share < 1:
            described["part"] = self.part
        return described


def best_of(repeats: int, run: Callable[[], Any], device: str, budget: float = float("inf")) -> Measured:
    """Return the shortest of some runs, fewer if they exceed the budget; memory is watched in the first."""
    runs: list[Measured] = []
    while len(runs) < repeats and sum(r.seconds for r in runs) <= budget:
        with watching(device, sample=not runs) as peak:
            value, seconds = timed(run, device)
        runs.append(Measured(value, seconds, peak[0]))
    return replace(min(runs, key=lambda r: r.seconds), peak=runs[0].peak)


def timed(run: Callable[[], Any], device: str) -> tuple[Any, float]:
    """Run, wait for the device, and return the result and the seconds."""
    wait(device)
    started = _clock()
    value = run()
    wait(device)
    return value, _clock() - started


def many_calls(f: Network, x: Tensor, calls: int) -> None:
    for _ in range(calls):
        f(x)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@contextmanager
def watching(device: str, sample: bool) -> Iterator[list[int]]:
    """Measure peak memory above that before; on a CPU the process is sampled every few milliseconds."""
    peak = [0]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield peak
        peak[0] = torch.cuda.max_memory_allocated() - before
        return
    release_freed_memory()
    before, ended = resident(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            peak[0] = max(peak[0], resident() - before)

    watcher = threading.Thread(target=watch)
    if sample:
        watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        if sample:
            watcher.join()


def resident() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def release_freed_memory() -> None:
    """Return freed memory to the system: a run that reuses it would seem to need none."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not a glibc system
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def network_times(f: Network, as_run: Network, y: Tensor, sizes: Sequence[int], calls: int) -> dict[str, Any]:
    """Time the network alone: at its best batch size, and as recollect runs it at the batch sizes of recovery."""
    tried = sorted({min(2**k, len(y)) for k in range(13)} | {max(1, len(y) * 3 // 4)})
    seconds = {size: one_call(f, y[:size]) for size in tried}
    best = min(tried, key=lambda size: seconds[size] / size)
    quickest = {size: quickest_call(as_run, y[:size]) for size in tried}
    same_batches = np.interp(sizes, tried, [quickest[size] for size in tried])
    return {
        "best_batch": best, "seconds": seconds[best] / best * sum(sizes) * calls,
        "image_steps_per_second": best / seconds[best], "seconds_same_batches": float(same_batches.sum()) * calls,
        "seconds_by_batch": {str(size): s for size, s in seconds.items()},
        "seconds_by_batch_as_run": {str(size): s for size, s in quickest.items()},
    }  # fmt: skip


def quickest_call(f: Network, x: Tensor) -> float:
    """Time f(x); on a GPU the faster of eager and captured."""
    if x.device.type != "cuda":
        return one_call(f, x)
    x = x.clone()
    eagerly = one_call(f, x)
    try:
        warm_up(partial(f, x), x.device)
        captured = capture(partial(f, x), x.device)
    except RuntimeError:  # a network that cannot be captured
        return eagerly
    return min(eagerly, one_call(lambda _: captured.replay(), x))  # type: ignore[arg-type, return-value]


def one_call(f: Network, x: Tensor, repeats: int = 5, at_least: float = 0.02) -> float:
    """Time f(x): the shortest of several series of calls."""
    device, calls, best = x.device.type, 1, float("inf")
    f(x)
    for _ in range(repeats):
        while True:
            _, seconds = timed(partial(many_calls, f, x, calls), device)
            if seconds >= at_least:
                break
            calls *= 2
        best = min(best, seconds / calls)
    return best


def in_turn(turns: int, ours: Callable[[], Any], f: Network, x: Tensor, calls: int) -> list[tuple[float, float]]:
    """Time recollect and so many calls of f alone in turns: what slows the machine for a while slows both."""
    alone, device = partial(many_calls, f, x, calls), x.device.type
    return [(timed(ours, device)[1], timed(alone, device)[1]) for _ in range(turns)]
