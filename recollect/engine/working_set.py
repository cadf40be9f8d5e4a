"""Run a method in bounded memory: images stream through a working set, and each leaves when it has stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.transfers import to_device, to_host
from recollect.engine.collect import Collector
from recollect.engine.prefetch import Prefetcher
from recollect.engine.runtime import Runtime
from recollect.recovery import Progress, Recovery, Snapshot, Stop, Trace


@dataclass(frozen=True, eq=False)
class Active(Recovery):
    """Images in the working set: recoveries that have not stopped yet, with their positions in the whole set."""

    index: Tensor

    @classmethod
    def begin(cls, y: Tensor, theta: Degradation | None, rows: slice, device: torch.device) -> Active:
        """Bring these rows of y to the device, with y as the first estimate and nothing done yet."""
        index = torch.arange(*rows.indices(len(y)), device=device)
        zeros = torch.zeros_like(index)
        if theta is not None:
            theta = theta.to(device)
        return Active(to_device(y[rows], device), theta, zeros, zeros, zeros + Stop.RUNNING, index)


State = TypeVar("State", bound=Active)


def run(
    count: int,
    f: Runtime,
    begin: Callable[[slice], State],
    step: Callable[[State], State],
    trace: Trace | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Step images until each has stopped, at most `f.chunk` at a time: finished ones leave, others enter."""
    done = 0
    active: State | None = None
    collector: Collector[Recovery] = Collector(count, f.device, f.chunk, f.home)
    with collector, Prefetcher(count, f.chunk, begin, ahead=f.device.type == "cuda", device=f.device) as prefetcher:
        while done < count:
            active = _join(active, prefetcher.take(f.chunk - _count(active)))
            active = step(active)
            if trace:
                trace(Snapshot(active.index, active.rounds, active.estimate, active.degradation))
            running = to_host(active.stop) == Stop.RUNNING  # here the host waits for the device
            if running.all():
                continue
            stopped = active[_positions(~running, f.device)] if running.any() else active
            collector.put(stopped.index, _recovery(stopped))
            done += len(stopped)
            active = active[_positions(running, f.device)] if running.any() else None
            if progress:
                progress(done, count)
        return collector.all().to(f.home)


def _count(active: Active | None) -> int:
    if active is None:
        return 0
    return len(active)


def _join(active: State | None, newcomers: list[State]) -> State:
    batches = newcomers if active is None else [active, *newcomers]
    return type(batches[0]).join(batches)


def _recovery(stopped: Active) -> Recovery:
    """Drop what a method carries beside the result."""
    return Recovery(**{field.name: getattr(stopped, field.name) for field in fields(Recovery)})


def _positions(flags: Tensor, device: torch.device) -> Tensor:
    return to_device(flags.nonzero()[:, 0], device)
