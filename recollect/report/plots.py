"""Geometry of the plots: data to places in a drawing; `plots.html` draws them and the style sheet colours them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 280, 190
LEFT, RIGHT, TOP, BOTTOM = 36.0, 272.0, 20.0, 156.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Data values onto a stretch of the drawing."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._plain(self.low), self._plain(self.high)
        share = (self._plain(value) - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.stop - self.start), 1)

    def _plain(self, value: float) -> float:
        return math.log10(value) if self.log else value


def across(low: float, high: float, *, log: bool = False) -> Scale:
    return Scale(low, high, LEFT, RIGHT, log)


def upward(low: float, high: float, *, log: bool = False) -> Scale:
    return Scale(low, high, BOTTOM, TOP, log)


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Series:
    """One line: a method on one set. With `pools` it is live: the script moves its points with the threshold."""

    name: str
    slot: int  # colour and marker
    control: bool
    points: list[Point]
    markers: list[Point] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    area: bool = False
    note: str = ""  # said below the plot

    @property
    def path(self) -> str:
        return path(self.points)

    @property
    def filled(self) -> str:
        return f"{self.path}L{self.points[-1][0]:g} {BOTTOM:g}L{self.points[0][0]:g} {BOTTOM:g}Z"


@dataclass(frozen=True)
class Cut:
    """The threshold as a line across the plot, on an axis in dB."""

    low: float
    high: float
    at: float


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    filled: bool
    name: str


@dataclass(frozen=True)
class Plot:
    title: str
    x_title: str
    y_title: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    series: list[Series] = field(default_factory=list)
    cut: Cut | None = None
    diagonal: bool = False
    rule: float | None = None  # an upright line that means something
    dots: list[Dot] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """Small plots side by side, one a mask, under one title."""

    title: str
    caption: str
    plots: list[Plot]
    view: int | None = None  # the number of the view it belongs to; None: shown always


def path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def steps(heights: Sequence[float], edges: Sequence[float], x: Scale, y: Scale) -> list[Point]:
    """The outline of a histogram."""
    points = [(x(edges[0]), y(0))]
    for height, left, right in zip(heights, edges, edges[1:], strict=False):
        points += [(x(left), y(height)), (x(right), y(height))]
    return [*points, (x(edges[-1]), y(0))]


def corners(points: Sequence[Point]) -> list[Point]:
    """The same line without the points inside its straight runs."""
    kept: list[Point] = []
    for point in points:
        while len(kept) > 1 and _straight(kept[-2], kept[-1], point):
            kept.pop()
        if not kept or kept[-1] != point:
            kept.append(point)
    return kept


def _straight(a: Point, b: Point, c: Point) -> bool:
    return (a[0] == b[0] == c[0]) or (a[1] == b[1] == c[1])


def share_ticks(y: Scale, top: float = 1.0) -> list[Tick]:
    return [Tick(y(v), f"{100 * v:.0f}%") for v in (0, top / 2, top)]
