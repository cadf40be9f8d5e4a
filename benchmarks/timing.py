"""Seconds, memory, the network's own speed, and the tables that show them."""

from __future__ import annotations

import ctypes
import gc
import statistics
import tempfile
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
from plain_recovery import Network
from torch import Tensor

from recollect import InputError
from recollect.records import read_json

CONTENDERS = ["one_by_one", "batched", "recollect"]  # (a), (b), (c)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_clock = CLOCKS["wall"]


def use_clock(name: str) -> None:
    """Which seconds count: of the wall's clock, or of this process on a CPU that others use too."""
    global _clock
    _clock = CLOCKS[name]


@dataclass(frozen=True)
class Measured:
    """What came out, the seconds it took, the memory at its peak, and of what share of the whole task."""

    value: Any
    seconds: float
    peak: int
    image_steps: int = 0
    share: float = 1.0
    part: str = ""  # in words, what of the task was measured where it is not all

    def describe(self, image_steps: int | None = None) -> dict[str, Any]:
        steps = self.image_steps if image_steps is None else image_steps
        return {
            "seconds": self.seconds / self.share, "measured_seconds": self.seconds, "measured_share": self.share,
            "image_steps_per_second": steps / self.seconds, "peak_bytes": self.peak,
            **({"part": self.part} if self.share < 1 else {}),
        }  # fmt: skip


def best_of(repeats: int, run: Callable[[], Any], device: str, budget: float = float("inf")) -> Measured:
    """The shortest of some runs, fewer where they exceed the budget; memory is watched in the first."""
    runs: list[Measured] = []
    while len(runs) < repeats and sum(r.seconds for r in runs) <= budget:
        with watching(device, sample=not runs) as peak:
            value, seconds = timed(run, device)
        runs.append(Measured(value, seconds, peak[0]))
    return replace(min(runs, key=lambda r: r.seconds), peak=runs[0].peak)


def timed(run: Callable[[], Any], device: str) -> tuple[Any, float]:
    """What a run gives, and its seconds until the device is done too."""
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
    """Bytes above what was in use before, at most; on a CPU the process is looked at every few milliseconds."""
    peak = [0]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield peak
        peak[0] = torch.cuda.max_memory_allocated() - before
        return
    give_back_freed_memory()
    before, ended = resident(), threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            peak[0] = max(peak[0], resident() - before)

    watcher = threading.Thread(target=look)
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


def give_back_freed_memory() -> None:
    """Else a run that finds memory of an earlier one would seem to need none."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not a glibc system
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def network_times(f: Network, as_run: Network, y: Tensor, sizes: Sequence[int], calls: int) -> dict[str, Any]:
    """Seconds of the network alone: at its best batch size, and as recollect runs it at the sizes that were in work."""
    tried = sorted({min(2**k, len(y)) for k in range(13)} | {max(1, len(y) * 3 // 4)})
    seconds = {size: one_call(f, y[:size]) for size in tried}
    best = min(tried, key=lambda size: seconds[size] / size)
    quickest = {size: quickest_call(as_run, y[:size]) for size in tried}
    at_work = np.interp(sizes, tried, [quickest[size] for size in tried])
    return {
        "best_batch": best, "seconds": seconds[best] / best * sum(sizes) * calls,
        "image_steps_per_second": best / seconds[best], "seconds_in_work": float(at_work.sum()) * calls,
        "seconds_by_batch": {str(size): s for size, s in seconds.items()},
        "seconds_by_batch_as_run": {str(size): s for size, s in quickest.items()},
    }  # fmt: skip


def quickest_call(f: Network, x: Tensor) -> float:
    """Seconds of f(x), on a GPU eagerly or captured."""
    if x.device.type != "cuda":
        return one_call(f, x)
    x, graph = x.clone(), torch.cuda.CUDAGraph()
    eagerly = one_call(f, x)
    try:
        with torch.cuda.graph(graph):
            f(x)
    except RuntimeError:  # a network that cannot be captured
        return eagerly
    return min(eagerly, one_call(lambda _: graph.replay(), x))  # type: ignore[arg-type, return-value]


def one_call(f: Network, x: Tensor, looks: int = 5, at_least: float = 0.02) -> float:
    """Seconds of f(x), the shortest of some looks at many calls in a row."""
    device, calls, best = x.device.type, 1, float("inf")
    f(x)
    for _ in range(looks):
        while True:
            _, seconds = timed(partial(many_calls, f, x, calls), device)
            if seconds >= at_least:
                break
            calls *= 2
        best = min(best, seconds / calls)
    return best


def in_turn(turns: int, ours: Callable[[], Any], f: Network, x: Tensor, calls: int) -> list[tuple[float, float]]:
    """Our seconds and those of so many calls of f alone, one after the other, turn by turn: what slows the machine for
    a while slows both."""
    alone, device = partial(many_calls, f, x, calls), x.device.type
    return [(timed(ours, device)[1], timed(alone, device)[1]) for _ in range(turns)]


@contextmanager
def mistakes_told() -> Iterator[None]:
    """Inside, a user's mistake ends the benchmark with one sentence."""
    try:
        yield
    except InputError as error:
        raise SystemExit(str(error)) from None


def read_result(path: Path, *parts: str) -> dict[str, Any]:
    """What a benchmark has written, with these parts."""
    found = read_json(path)
    if not isinstance(found, dict) or not all(part in found for part in ("versions", "device", *parts)):
        raise InputError(f"{path} was not written by this benchmark.")
    return found


def can_be_written(*paths: Path | None) -> None:
    """Told before anything is measured."""
    for path in (path for path in paths if path is not None):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
        if path.is_dir():
            raise InputError(f"{path} cannot be written: it is a folder.")


def tables(results: dict[str, Any]) -> str:
    """Markdown, for the terminal and for docs/performance.md."""
    versions, cases = results["versions"], results["cases"]
    text = [
        f"{results['device']}, {results['threads']} threads, {results['clock']} time; torch {versions['torch']}, "
        f"CUDA {versions['cuda']}, recollect {versions['recollect']}; {results['date']}",
        table(["case", "images", "rounds at most", "stops of (c)", "image-steps", "(a) one by one", "(b) batched",
               "(c) recollect", "floor", "in work"],
              [times_row(name, case) for name, case in cases.items()]),
        table(["case", "(c) / floor", "(c) / in work", "(a) / (c)", "(b) / (c)",
               "image-steps/s of (a), (b), (c), floor", "peak of (a), (b), (c), MiB", "(c) against (a)",
               "(c) against (b)"],
              [ratio_row(name, case) for name, case in cases.items()]),
    ]  # fmt: skip
    for name, rows in results["growth"].items():
        head = [f"{name}: images", "seconds", "ms an image", "image-steps/s", "the network alone", "working memory"]
        text.append(table(head, [growth_row(row) for row in rows]))
    return "\n\n".join([*text, *results["notes"]])


def times_row(name: str, case: dict[str, Any]) -> list[str]:
    floor = case["floor"]
    contenders = (case[key] for key in CONTENDERS)
    stops = ", ".join(f"{stop} {count}" for stop, count in case["stops"].items())
    return [
        name, str(case["images"]), str(case["limit"]), stops, f"{case['image_steps']:,}",
        *[show(c) for c in contenders],
        f"{floor['seconds']:.2f} s (batch {floor['best_batch']})", f"{floor['seconds_in_work']:.2f} s",
    ]  # fmt: skip


def ratio_row(name: str, case: dict[str, Any]) -> list[str]:
    ours, floor = case["recollect"], case["floor"]
    speeds = (case[key]["image_steps_per_second"] for key in (*CONTENDERS, "floor"))
    over_floor = statistics.median(case.get("over_floor", [ours["seconds"] / floor["seconds"]]))
    return [
        name, f"{over_floor:.2f}", f"{ours['seconds'] / floor['seconds_in_work']:.2f}",
        f"{case['one_by_one']['seconds'] / ours['seconds']:.1f}", f"{case['batched']['seconds'] / ours['seconds']:.1f}",
        " / ".join(f"{speed:,.0f}" for speed in speeds),
        " / ".join(f"{case[key]['peak_bytes'] / 2**20:,.0f}" for key in CONTENDERS),
        same(case["one_by_one"]["difference"]), same(case["batched"]["difference"]),
    ]  # fmt: skip


def show(contender: dict[str, Any]) -> str:
    share = contender["measured_share"]
    return f"{contender['seconds']:.2f} s" + ("" if share == 1 else f" (from {contender.get('part', f'{share:.0%}')})")


def same(difference: dict[str, Any]) -> str:
    apart = "-" if difference["largest"] is None else f"{difference['largest']:.1e}"
    found = difference.get("apart_and_recovered", 0)
    others = f"; {difference['apart']} apart, {found} of them recovered" if difference.get("apart") else ""
    return f"{apart} ({difference['settled']} of {difference['of']}{others})"


def growth_row(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['images']:,}", f"{row['seconds']:.2f}", f"{1e3 * row['seconds'] / row['images']:.2f}",
        f"{row['image_steps_per_second']:,.0f}",
        f"{row['floor_per_second']:,.0f}" if "floor_per_second" in row else "-", f"{row['peak_bytes'] / 2**20:.0f} MiB",
    ]  # fmt: skip


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
