"""From records to what a figure shows: lines of points with their intervals. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect.paper.cells import Cell
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import Z_95, threshold_grid


@dataclass(frozen=True)
class Point:
    """A point of a line, with its 95% interval, or from the lowest to the highest of several trainings."""

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


def over_trainings(records: Sequence[Record], statistic: Statistic) -> tuple[float, float, float]:
    """Measure one training with its interval; of several the mean, the lowest and the highest."""
    if len(records) == 1:
        return statistic(records[0])
    values = [statistic(record)[0] for record in records]
    return sum(values) / len(values), min(values), max(values)


def against_loss(store: Store, cells: Iterable[Cell], statistic: Statistic) -> Panel:
    """Draw a line for each method over the measured train loss; cells without a record are left out."""
    groups: dict[tuple[str, float | None], list[Record]] = {}  # the trainings of one network at one loss
    constants: dict[str, tuple[float, float, float]] = {}  # of methods that see no network: equal at every loss
    for cell in cells:
        record = store.shown(cell)
        if record is None:
            continue
        if cell.sees_network:
            groups.setdefault((cell.method, cell.loss), []).append(record)
        else:
            constants[cell.method] = statistic(record)
    lines: dict[str, list[Point]] = {}
    for (method, _), records in groups.items():
        point = Point(records[0].provenance["train_loss"], *over_trainings(records, statistic))
        lines.setdefault(method, []).append(point)
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
    groups: dict[str, list[Record]] = {}
    for cell, record in recorded:
        groups.setdefault(cell.method, []).append(record)
    lines = {}
    for method, records in groups.items():
        points = [(level, over_trainings(records, rate_below(level))) for level in threshold_grid()]
        lines[method] = [Point(level, *values) for level, values in points]
    return Panel(lines)


def share_of_all(store: Store, cells: Iterable[Cell], threshold: float, *, or_best: bool = True) -> float | None:
    """Measure the mean share recovered over cells, in percent; None unless all of them are recorded.

    The best weights stand for a last loss that was not reached, unless `or_best` is False.
    """
    records = [store.shown(cell) if or_best else store.find(cell) for cell in cells]
    rates = [record.score.rate(threshold).value for record in records if record]
    if not rates or len(rates) < len(records):
        return None
    return 100 * sum(rates) / len(rates)
