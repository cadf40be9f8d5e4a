"""From records to what a figure shows: lines of points with their intervals. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from recollect.paper.cells import Cell
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import Z_95, threshold_grid


@dataclass(frozen=True)
class Point:
    """A point of a line, with its 95% interval."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One set of axes: a line for each method."""

    lines: dict[str, list[Point]]


Statistic = Callable[[Record], tuple[float, float, float]]  # value, low, high


def rate_below(threshold: float) -> Statistic:
    """Measure the share of images with an error below the threshold, in percent."""

    def rate_of(record: Record) -> tuple[float, float, float]:
        rate = record.score.rate(threshold)
        low, high = rate.interval
        return 100 * rate.value, 100 * low, 100 * high

    return rate_of


def mean_psnr(record: Record) -> tuple[float, float, float]:
    """Measure the mean PSNR over the images, with its 95% interval."""
    values = record.score.psnr
    mean, margin = float(values.mean()), 0.0
    if len(values) > 1:
        margin = Z_95 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean - margin, mean + margin


def against_loss(store: Store, cells: Iterable[Cell], statistic: Statistic) -> Panel:
    """Draw a line for each method over the measured train loss; cells without a record are left out."""
    lines: dict[str, list[Point]] = {}
    constants: dict[str, tuple[float, float, float]] = {}  # of methods that see no network: equal at every loss
    for cell in cells:
        record = store.shown(cell)
        if record is None:
            continue
        if cell.sees_network:
            point = Point(record.provenance["train_loss"], *statistic(record))
            lines.setdefault(cell.method, []).append(point)
        else:
            constants[cell.method] = statistic(record)
    lines |= _constant_lines(constants, {point.x for points in lines.values() for point in points})
    for points in lines.values():
        points.sort(key=lambda point: -point.x)
    return Panel(lines)


def _constant_lines(
    constants: Mapping[str, tuple[float, float, float]], losses: Collection[float]
) -> dict[str, list[Point]]:
    """Draw horizontal lines; without a network there is no loss to draw them over."""
    if not losses:
        return {}
    return {method: [Point(loss, *value) for loss in losses] for method, value in constants.items()}


def against_threshold(store: Store, cells: Iterable[Cell]) -> Panel:
    """Draw a line for each method over the threshold; the panel is empty if no method that sees a network has one."""
    recorded = [(cell, record) for cell in cells if (record := store.shown(cell))]
    if not any(cell.sees_network for cell, _ in recorded):
        return Panel({})
    lines = {}
    for cell, record in recorded:
        lines[cell.method] = [Point(threshold, *rate_below(threshold)(record)) for threshold in threshold_grid()]
    return Panel(lines)
