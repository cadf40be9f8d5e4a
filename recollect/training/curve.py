"""Write the loss curve of a run: a table always, a chart if matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from recollect.palette import FRAME, PALETTE
from recollect.records import atomically
from recollect.training.monitor import Point

TABLE, CHART = "loss.csv", "loss.svg"


def write_curve(folder: Path, history: Sequence[Point]) -> None:
    """Write one row for each window: seconds, steps, loss, averaged, rate."""
    header = [field.name for field in fields(Point)]
    rows = [header, *([repr(value) for value in astuple(point)] for point in history)]
    with atomically(folder / TABLE) as file:
        file.write_text("".join(",".join(row) + "\n" for row in rows))


def draw_curve(folder: Path, history: Sequence[Point], milestones: Sequence[float] = ()) -> Path | None:
    """Draw loss against steps on logarithmic axes; None without matplotlib or with fewer than two points."""
    try:
        from matplotlib.figure import Figure  # pyplot would keep global state
    except ImportError:
        return None
    points = [p for p in history if 0 < p.loss < math.inf and 0 < p.averaged < math.inf]
    if len(points) < 2:
        return None
    figure = Figure(figsize=(6, 3.5))
    figure.subplots_adjust(
        left=0.12, right=0.98, bottom=0.14, top=0.97
    )  # a layout that fits itself takes twice as long
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="steps", ylabel="train loss (MSE)")
    steps = [p.steps for p in points]
    axes.plot(steps, [p.loss for p in points], color=FRAME, linewidth=0.8, label="weights")
    axes.plot(steps, [p.averaged for p in points], color=PALETTE["blue"].light, linewidth=1.4, label="averaged weights")
    for milestone in milestones:
        axes.axhline(milestone, color=PALETTE["orange"].light, linewidth=0.6, linestyle=":")
    axes.legend(frameon=False)
    with atomically(folder / CHART) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})  # the same run gives the same file
    return folder / CHART
