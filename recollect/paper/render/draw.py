"""Figures as they would be printed: SVG and PNG, one colour, marker and dash a method, intervals shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.degradation import SIX
from recollect.paper.render.panels import Dot, Panel
from recollect.records import atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: dict[str, tuple[str, str, Any, str]] = {  # colour, marker, dashes, words; the first four as in the paper
    "blind": ("#e07b00", "o", "-", "blind (mask unknown)"),
    "known": ("#1f5fa8", "s", (0, (5, 1.5)), "mask known"),
    "iterate": ("#2b8a3e", "^", (0, (1, 1)), "autoencoder iterated"),
    "ddnm": ("#c0392b", "D", (0, (3, 1, 1, 1)), "DDNM (never sees the autoencoder)"),
    "refined": ("#b98bd0", "v", (0, (9, 1.5, 1.5, 1.5)), "blind, refined"),
    "known-400": ("#79b4e8", "P", (0, (2, 2)), "mask known, 400 steps"),
}


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    label: str
    limits: tuple[float, float]
    log: bool = False
    least: float = -np.inf  # what lies below is drawn here, at the edge


LOSS = Axis("train loss", (2e-4, 4e-9), log=True)  # falling to the right, as in the paper
PERCENT = Axis("recovered, %", (-4, 104))
DECIBEL = Axis("PSNR, dB", (-4, 110), least=0)
WIDE = 8  # inches, from which on four names stand in one row


def grid_figure(rows: Mapping[str, Sequence[Panel]], columns: Sequence[str], x: Axis, y: Axis) -> Figure:
    """Panels in rows with a name each; a column named like a mask is headed by its picture."""
    from matplotlib.figure import Figure

    rows = {name: panels for name, panels in rows.items() if any(panel.lines for panel in panels)} or dict(rows)
    masks = [name for name in columns if name in SIX]
    height = [0.55] * bool(masks) + [1.0] * len(rows)
    size = 1.75 * len(columns) + 0.9, 1.45 * sum(height) + 0.75
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(height), len(columns), squeeze=False, gridspec_kw={"height_ratios": height})
    if masks:
        for place, name in zip(axes[0], columns, strict=True):
            _draw_mask(place, list(SIX).index(name) + 1, name)
    for row, (name, panels) in enumerate(rows.items()):
        for column, panel in enumerate(panels):
            place = axes[row + bool(masks)][column]
            _draw_panel(place, panel, x, y)
            left = not any(other.lines for other in panels[:column])
            below = any(others[column].lines for others in list(rows.values())[row + 1 :])
            place.tick_params(labelleft=left, labelbottom=not below)
            if column == 0:
                place.set_ylabel(name, fontsize=9)
            if row == 0 and not masks:
                place.set_title(columns[column], fontsize=9)
    figure.supxlabel(x.label, fontsize=9)
    figure.supylabel(y.label, fontsize=9)
    _legend(figure, [panel for panels in rows.values() for panel in panels])
    return figure


def picture_figure(rows: Mapping[str, Sequence[np.ndarray]], titles: Sequence[str] = ()) -> Figure:
    """Rows of pictures, H x W x C or H x W in 0..255, each row named."""
    from matplotlib.figure import Figure

    columns = max(len(row) for row in rows.values())
    figure = Figure(figsize=(0.85 * columns + 1.0, 0.85 * len(rows) + 0.35), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for places, (name, pictures) in zip(axes, rows.items(), strict=True):
        for place in places[len(pictures) :]:
            place.axis("off")
        for place, picture in zip(places, pictures, strict=False):
            place.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            place.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
            place.spines[:].set(color="#9aa5b1", linewidth=0.5)
        places[0].text(-0.08, 0.5, name, transform=places[0].transAxes, ha="right", va="center", fontsize=7)
    for place, title in zip(axes[0], titles, strict=False):
        place.set_title(title, fontsize=7)
    return figure


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """As SVG and as PNG; equal figures make equal files."""
    import matplotlib

    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "recollect"}):
        for kind in ("svg", "png"):
            path = folder / f"{name}.{kind}"
            with atomically(path) as file:
                meta = {"Date": None} if kind == "svg" else {"Software": None}
                figure.savefig(file, format=kind, dpi=200, metadata=meta)
            paths.append(path)
    return paths


def _draw_panel(place: Axes, panel: Panel, x: Axis, y: Axis) -> None:
    if not panel.lines:  # its names stay, for the row and the column
        place.set(xticks=[], yticks=[], frame_on=False)
        return
    for method in (name for name in reversed(STYLES) if name in panel.lines):  # blind on top, where lines meet at 0
        dots: list[Dot] = panel.lines[method]
        colour, marker, dashes, words = STYLES[method]
        at = [dot.x for dot in dots]
        every = max(1, len(dots) // 8)
        low, middle, high = (np.maximum([getattr(d, value) for d in dots], y.least) for value in ("low", "y", "high"))
        place.fill_between(at, low, high, color=colour, alpha=0.14, linewidth=0)
        place.plot(
            at, middle, color=colour, marker=marker, markevery=every, markersize=3.2, linewidth=1.2,
            linestyle=dashes, label=words,
        )  # fmt: skip
    place.set_xscale("log" if x.log else "linear")
    place.minorticks_off()
    place.set_xlim(*x.limits)
    place.set_ylim(*y.limits)
    place.grid(color="#d9dde2", linewidth=0.5)
    place.tick_params(labelsize=7, length=2)
    place.spines[["top", "right"]].set_visible(False)


def _draw_mask(place: Axes, number: int, name: str) -> None:
    kept = SIX[name](32, 32)
    place.imshow(np.where(kept, 255, 60), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    place.set_title(f"{number} {name}", fontsize=9)
    place.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    place.spines[:].set(color="#9aa5b1", linewidth=0.5)


def _legend(figure: Figure, panels: Sequence[Panel]) -> None:
    """One legend for all panels, of the methods that are in any."""
    from matplotlib.lines import Line2D

    shown = [m for m in STYLES if any(m in panel.lines for panel in panels)]
    handles = [
        Line2D(
            [], [], color=STYLES[m][0], marker=STYLES[m][1], linestyle=STYLES[m][2], markersize=4, label=STYLES[m][3]
        )
        for m in shown
    ]
    columns = 4 if len(shown) == 4 and figure.get_figwidth() > WIDE else min(3, max(1, len(shown)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
