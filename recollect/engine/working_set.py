"""Running a solver in bounded memory: images stream through a working set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.transfers import moved, on_host
from recollect.engine.collect import Leaving
from recollect.engine.prefetch import Entrance
from recollect.engine.runtime import Ready
from recollect.recovery import Progress, Recovery, Snapshot, Stop, Trace


@dataclass(frozen=True, eq=False)
class InWork(Recovery):
    """Images in work: recoveries that have not stopped yet, with their places in the set."""

    index: Tensor

    @classmethod
    def begin(cls, y: Tensor, theta: Degradation | None, some: slice, device: torch.device) -> InWork:
        """Images `some` of y on the device, with y as the first estimate and nothing done yet."""
        index = torch.arange(*some.indices(len(y)), device=device)
        nothing = torch.zeros_like(index)
        theta = None if theta is None else theta.to(device)
        return InWork(moved(y[some], device), theta, nothing, nothing, nothing + Stop.RUNNING, index)


State = TypeVar("State", bound=InWork)


def work_through(
    count: int,
    f: Ready,
    enter: Callable[[slice], State],
    step: Callable[[State], State],
    trace: Trace | None,
    progress: Progress | None,
) -> Recovery:
    """Step images until each has stopped, at most `f.chunk` in work: finished ones go home, others come in."""
    done = 0
    active: State | None = None
    leaving: Leaving[Recovery] = Leaving(count, f.device, f.chunk, f.home)
    with leaving, Entrance(count, f.chunk, enter, ahead=f.device.type == "cuda", device=f.device) as entrance:
        while done < count:
            newcomers = entrance.take(f.chunk - (len(active) if active else 0))
            active = type(newcomers[0]).join([*([active] if active else []), *newcomers]) if newcomers else active
            assert active is not None
            active = step(active)
            if trace:
                trace(Snapshot(active.index, active.rounds, active.estimate, active.degradation))
            running = on_host(active.stop) == Stop.RUNNING  # here the host waits for the device
            if running.all():
                continue
            gone = active[_places(~running, f.device)] if running.any() else active
            leaving.put(gone.index, Recovery(**{r.name: getattr(gone, r.name) for r in fields(Recovery)}))
            done += len(gone)
            active = active[_places(running, f.device)] if running.any() else None
            if progress:
                progress(done, count)
        return leaving.all().to(f.home)


def _places(flags: Tensor, device: torch.device) -> Tensor:
    return moved(flags.nonzero()[:, 0], device)
