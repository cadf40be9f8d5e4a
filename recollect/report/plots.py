"""Geometry of the plots: from data to coordinates; `plots.html` draws them and the style sheet colours them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 280, 190
LEFT, RIGHT, TOP, BOTTOM = 36.0, 272.0, 20.0, 156.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Map data values to coordinates of the drawing, and values beyond the ends to the ends."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._linear(self.low), self._linear(self.high)
        share = (self._linear(value) - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.stop - self.start), 1)

    def _linear(self, value: float) -> float:
        if self.log:
            return math.log10(value)
        return value


def x_scale(low: float, high: float, *, log: bool = False) -> Scale:
    return Scale(low, high, LEFT, RIGHT, log)


def y_scale(low: float, high: float, *, log: bool = False) -> Scale:
    return Scale(low, high, BOTTOM, TOP, log)


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Series:
    """One line, as a rule a method on one set."""

    name: str
    colour: str  # a name in recollect.palette; the marker goes with it
    control: bool
    points: list[Point]
    markers: list[Point] = field(default_factory=list)
    area: bool = False
    note: str = ""  # text below the plot

    @property
    def path(self) -> str:
        return "M" + "L".join(f"{x:g} {y:g}" for x, y in self.points)

    @property
    def filled_path(self) -> str:
        return f"{self.path}L{self.points[-1][0]:g} {BOTTOM:g}L{self.points[0][0]:g} {BOTTOM:g}Z"


@dataclass(frozen=True)
class ThresholdLine:
    """The threshold as an upright line; the ends of the axis are in dB."""

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
    threshold: ThresholdLine | None = None
    diagonal: bool = False
    limit: float | None = None  # an upright line at a value with a meaning
    dots: list[Dot] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """Small plots under one title, as a rule one a mask; the page opens with the first, or shows all together."""

    title: str
    caption: str
    plots: list[Plot]
    together: bool = False

    @property
    def shown(self) -> list[Plot]:
        return self.plots if self.together else self.plots[:1]

    @property
    def folded(self) -> list[Plot]:
        return self.plots[len(self.shown) :]


def histogram_outline(heights: Sequence[float], edges: Sequence[float], x: Scale, y: Scale) -> list[Point]:
    points = [(x(edges[0]), y(0))]
    for height, left, right in zip(heights, edges[:-1], edges[1:], strict=True):
        points += [(x(left), y(height)), (x(right), y(height))]
    return simplified([*points, (x(edges[-1]), y(0))])


def simplified(points: Sequence[Point]) -> list[Point]:
    """Return the same line without the points inside its upright and level stretches."""
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
