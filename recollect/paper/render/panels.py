"""From records to what a figure shows: lines of points with their intervals. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recollect.paper.cells import Cell
from recollect.paper.store import Results
from recollect.records import Record
from recollect.scoring import threshold_grid


@dataclass(frozen=True)
class Dot:
    """A point of a line, with its 95% interval."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One set of axes: a line a method."""

    lines: dict[str, list[Dot]]


Reading = Callable[[Record], tuple[float, float, float]]  # value, low, high


def rate_below(threshold: float) -> Reading:
    """The share of images with an error below the threshold, in percent."""

    def read(record: Record) -> tuple[float, float, float]:
        rate = record.score.rate(threshold)
        low, high = rate.interval
        return 100 * rate.value, 100 * low, 100 * high

    return read


def mean_psnr(record: Record) -> tuple[float, float, float]:
    """The mean over images, within twice its standard error."""
    values = record.score.psnr
    mean = float(values.mean())
    spread = 1.96 * float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return mean, mean - spread, mean + spread


def against_loss(results: Results, cells: Iterable[Cell], read: Reading) -> Panel:
    """A line a method over the train loss that was measured; what has no record is left out."""
    lines: dict[str, list[Dot]] = {}
    level: dict[str, tuple[float, float, float]] = {}  # of methods that see no network: the same at every loss
    for cell in cells:
        if record := results.best_of(cell):
            if cell.sees_network:
                lines.setdefault(cell.method, []).append(Dot(record.provenance["train_loss"], *read(record)))
            else:
                level[cell.method] = read(record)
    losses = {dot.x for dots in lines.values() for dot in dots}
    if losses:
        lines |= {method: [Dot(loss, *value) for loss in losses] for method, value in level.items()}
    return Panel({method: sorted(dots, key=lambda dot: -dot.x) for method, dots in lines.items()})


def against_threshold(results: Results, cells: Iterable[Cell]) -> Panel:
    """A line a method over the threshold below which an image counts as recovered; nothing where no network was."""
    found = [(cell, record) for cell in cells if (record := results.best_of(cell))]
    if not any(cell.sees_network for cell, _ in found):
        return Panel({})
    return Panel({c.method: [Dot(t, *rate_below(t)(record)) for t in threshold_grid()] for c, record in found})
