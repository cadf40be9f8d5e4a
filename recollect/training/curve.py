"""The loss curve of a run on disk: a table always, a drawing where matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from recollect.checkpoints import writing
from recollect.training.monitor import Point

TABLE, DRAWING = "loss.csv", "loss.svg"


def write_curve(folder: Path, history: Sequence[Point]) -> None:
    """One row a window: seconds, steps, loss, averaged, rate."""
    rows = [[field.name for field in fields(Point)], *([repr(value) for value in astuple(p)] for p in history)]
    with writing(folder / TABLE) as file:
        file.write_text("".join(",".join(row) + "\n" for row in rows))


def draw_curve(folder: Path, history: Sequence[Point], milestones: Sequence[float] = ()) -> Path | None:
    """Loss against steps, both on scales of decades; None where there is nothing to draw, or nothing to draw with."""
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, no state left behind
    except ImportError:
        return None
    points = [p for p in history if 0 < p.loss < math.inf and 0 < p.averaged < math.inf]
    if len(points) < 2:
        return None
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="steps", ylabel="train loss (MSE)")
    steps = [p.steps for p in points]
    axes.plot(steps, [p.loss for p in points], color="#9aa5b1", linewidth=0.8, label="weights")
    axes.plot(steps, [p.averaged for p in points], color="#1f5fa8", linewidth=1.4, label="averaged weights")
    for milestone in milestones:
        axes.axhline(milestone, color="#c8503c", linewidth=0.6, linestyle=":")
    axes.legend(frameon=False)
    with writing(folder / DRAWING) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})  # no date: the same run, the same file
    return folder / DRAWING
