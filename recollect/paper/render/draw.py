"""Figures for print: a colour, a marker and a dash pattern for each method, intervals shaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.degradation import PAPER_MASKS
from recollect.methods import METHODS, Method
from recollect.palette import FRAME, GRID, HEAT, PALETTE, assign_colours
from recollect.paper.render.panels import Panel, Point
from recollect.records import atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (9, 1.5, 1.5, 1.5)), (0, (2, 2)), (0, (1, 3)),
    (0, (6, 1, 1, 1, 1, 1)), (0, (12, 2)),
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How the line of one method is drawn."""

    colour: str
    marker: str
    dashes: Any
    label: str
    is_path: bool = False  # its points are in no order along the axis: markers grow along it, and ranges are bars


def method_styles(methods: Mapping[str, type[Method]] = METHODS) -> dict[str, Style]:
    """Give every method the colour and label it names; markers and dashes follow its position."""
    colours = assign_colours([method.colour for method in methods.values()])
    styles = {}
    for position, (name, method) in enumerate(methods.items()):
        turn, marker = divmod(position, len(MARKERS))
        dashes = DASHES[(marker + turn) % len(DASHES)]  # each turn joins markers with other dashes
        styles[name] = Style(PALETTE[colours[position]].light, MARKERS[marker], dashes, method.label or name)
    return styles


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    label: str
    limits: tuple[float, float]
    log: bool = False
    least: float = -np.inf  # lower values are drawn here, at the edge
    ticks: tuple[float, ...] = ()  # the only values that are marked; none: as matplotlib chooses


@dataclass(frozen=True)
class Size:
    """How large panels and letters are, in inches and points."""

    height: float  # of a panel
    font: float
    ticks: float
    width: float = 1.75  # of a panel ...
    total: float | None = None  # ... or of the figure
    legend: int = 3  # columns
    has_labels: bool = True  # the legend explains the methods; else it only names them


LARGE = Size(1.45, 9, 7)  # a file of its own, to be enlarged
PAGE = Size(1.4, 11, 9.5, total=4.4, has_labels=False)  # on a page, where a phone shows it 390 pixels wide
LOSS = Axis("train loss", (2e-4, 4e-9), log=True)  # falls to the right, as in the paper
PERCENT = Axis("recovered, %", (-4, 104))
DECIBEL = Axis("PSNR, dB", (-4, 110), least=0)
PICTURE_FONT = 10  # of labels beside pictures
WIDE = 8  # inches: a wider figure has four labels of its legend in a row


def grid_figure(
    rows: Mapping[str, Sequence[Panel]], columns: Sequence[str], x: Axis, y: Axis, title: str = "", size: Size = LARGE
) -> Figure:
    """Draw named rows of panels; a column that is named like a mask has its picture at the top."""
    from matplotlib.figure import Figure

    rows = _without_empty_rows(rows)
    has_masks = any(name in PAPER_MASKS for name in columns)
    heights = [1.0] * len(rows)
    if has_masks:
        heights.insert(0, 0.55)
    width = size.total or size.width * len(columns) + 0.9
    figure = Figure(figsize=(width, size.height * sum(heights) + 1.2), layout="constrained")
    axes = figure.subplots(len(heights), len(columns), squeeze=False, gridspec_kw={"height_ratios": heights})
    for top, name in zip(axes[0], columns, strict=True):
        top.set_title(name, fontsize=size.font)
        if has_masks:
            _draw_mask(top, name)
    panel_axes = axes[1:] if has_masks else axes
    panels = [panel for row in rows.values() for panel in row]
    for ax, panel in zip(panel_axes.flat, panels, strict=True):
        _draw_panel(ax, panel, x, y, size.ticks)
    _label_edges(panel_axes, rows, size.font)
    figure.supxlabel(x.label, fontsize=size.font)
    figure.supylabel(y.label, fontsize=size.font)
    _add_legend(figure, panels, title, size)
    return figure


def bar_figure(groups: Mapping[str, Mapping[str, float]], x: Axis, title: str) -> Figure:
    """Draw a panel of horizontal bars for each group, one below the other, with the values written beside them."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(label for bars in groups.values() for label in bars))
    colours = [colour.light for colour in PALETTE.values()]
    figure = Figure(figsize=(5, 0.4 + len(groups) * (0.35 + 0.24 * len(labels))), layout="constrained")
    for ax, (name, bars) in zip(figure.subplots(len(groups), 1, squeeze=False)[:, 0], groups.items(), strict=True):
        drawn = ax.barh(labels, [bars[label] for label in labels], color=colours[: len(labels)])
        ax.bar_label(drawn, fmt="%.0f", padding=2, fontsize=PAGE.ticks)
        ax.set(xlim=(0, 112), xticks=range(0, 101, 25))
        ax.invert_yaxis()
        ax.set_title(name, fontsize=PAGE.font, loc="left")
        ax.tick_params(labelsize=PAGE.ticks, length=2)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(x.label, fontsize=PAGE.font)
    figure.suptitle(title, fontsize=PAGE.font, fontweight="bold")
    return figure


@dataclass(frozen=True)
class Series:
    """A panel whose lines are not methods: each has a name, for which the figure has a style."""

    title: str
    x: Axis
    lines: Mapping[str, Sequence[Point]]


def loss_styles(losses: Sequence[float]) -> dict[str, Style]:
    """Give train losses shades of one ramp, which is no method's colour: the lower the loss, the darker."""
    shades = HEAT[min(len(losses), len(HEAT)) - 1 :: -1]
    return {
        short(loss): Style(
            shades[i % len(shades)], MARKERS[i % len(MARKERS)], DASHES[i % len(DASHES)], f"loss {short(loss)}"
        )
        for i, loss in enumerate(losses)
    }


def short(number: float) -> str:
    """Write a power of ten without zeros before its exponent: 1e-8."""
    return re.sub(r"e([-+])0", r"e\1", f"{number:.0e}")


def series_figure(
    panels: Sequence[Series], styles: Mapping[str, Style], y: Axis, title: str, *, columns: int = 1, height: float = 2.0
) -> Figure:
    """Draw panels below each other; one legend names the lines of all, in a cell of its own if there is one left."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(PAGE.total or 0, height * rows + 1.2), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for position, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
        for name, points in reversed(list(panel.lines.items())):  # the first line is drawn on top
            _draw_line(ax, points, styles[name], y)
        _set_axes(ax, panel.x, y, PAGE.ticks)
        ax.set_title(panel.title, fontsize=PAGE.ticks + 0.5, loc="left")
        ax.tick_params(labelleft=position % columns == 0)
    if label := panels[0].x.label:
        figure.supxlabel(label, fontsize=PAGE.font)
    figure.supylabel(y.label, fontsize=PAGE.font)
    used = [style for name, style in styles.items() if any(name in panel.lines for panel in panels)]
    _add_series_legend(figure, list(axes[len(panels) :]), used, title)
    return figure


def _add_series_legend(figure: Figure, free: Sequence[Axes], styles: Sequence[Style], title: str) -> None:
    heading: dict[str, Any] = {"size": PAGE.font + 1, "weight": "bold"}
    legend: dict[str, Any] = {
        "handles": [_legend_line(style, style.label) for style in styles],
        "frameon": False,
        "fontsize": PAGE.ticks + 0.5,
    }
    if not free:
        figure.legend(loc="outside upper center", ncols=2, title=title, title_fontproperties=heading, **legend)
        return
    figure.suptitle(title, **heading)
    for ax in free:
        ax.axis("off")
    free[-1].legend(loc="center", **legend)


def _without_empty_rows(rows: Mapping[str, Sequence[Panel]]) -> dict[str, Sequence[Panel]]:
    """Leave out rows without any line; if none has one, keep them all."""
    drawn = {name: panels for name, panels in rows.items() if any(panel.lines for panel in panels)}
    return drawn or dict(rows)


def _label_edges(axes: np.ndarray, rows: Mapping[str, Sequence[Panel]], font: float) -> None:
    """Put numbers on the outermost axes that have lines alone, and name the rows."""
    for row, (name, panels) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(name, fontsize=font)
        first = _first_with_lines(panels)
        for column, ax in enumerate(row):
            ax.tick_params(labelleft=column <= first)
    for column, column_axes in enumerate(axes.T):
        from_below = [panels[column] for panels in reversed(list(rows.values()))]
        first = _first_with_lines(from_below)
        for position, ax in enumerate(reversed(column_axes)):
            ax.tick_params(labelbottom=position <= first)


def _first_with_lines(panels: Sequence[Panel]) -> int:
    for position, panel in enumerate(panels):
        if panel.lines:
            return position
    return len(panels)


def picture_figure(rows: Mapping[str, Sequence[np.ndarray]], titles: Sequence[str] = ()) -> Figure:
    """Draw named rows of pictures, H x W x C or H x W in 0..255."""
    from matplotlib.figure import Figure

    columns = max(len(pictures) for pictures in rows.values())
    figure = Figure(figsize=(0.85 * columns + 1.0, 0.85 * len(rows) + 0.35), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for row, (name, pictures) in zip(axes, rows.items(), strict=True):
        for ax in row[len(pictures) :]:
            ax.axis("off")
        for ax, picture in zip(row, pictures, strict=False):
            _draw_picture(ax, picture)
        row[0].text(-0.08, 0.5, name, transform=row[0].transAxes, ha="right", va="center", fontsize=PICTURE_FONT)
    for ax, title in zip(axes[0], titles, strict=False):
        ax.set_title(title, fontsize=PICTURE_FONT)
    return figure


def save_chart(figure: Figure, folder: Path, name: str) -> Path:
    """Save lines and numbers, as SVG."""
    return _save(figure, folder / f"{name}.svg", {"Date": None})


def save_pictures(figure: Figure, folder: Path, name: str) -> Path:
    """Save images, as PNG."""
    return _save(figure, folder / f"{name}.png", {"Software": None})


def _save(figure: Figure, path: Path, metadata: dict[str, Any]) -> Path:
    """Save a figure; equal figures make equal files."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "recollect"}), atomically(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=200, metadata=metadata)
    return path


def _draw_panel(ax: Axes, panel: Panel, x: Axis, y: Axis, font: float) -> None:
    if not panel.lines:  # the names of its row and column stay
        ax.set(xticks=[], yticks=[], frame_on=False)
        return
    for method, style in reversed(method_styles().items()):  # the first method is drawn on top
        if method in panel.lines:
            _draw_line(ax, panel.lines[method], style, y)
    _set_axes(ax, x, y, font)


def _set_axes(ax: Axes, x: Axis, y: Axis, font: float = LARGE.ticks) -> None:
    ax.set_xscale("log" if x.log else "linear")
    if x.ticks:
        ax.set_xticks(x.ticks, [f"{tick:g}" for tick in x.ticks])
    ax.minorticks_off()
    ax.set_xlim(*x.limits)
    ax.set_ylim(*y.limits)
    ax.grid(color=GRID, linewidth=0.5)
    ax.tick_params(labelsize=font, length=2)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_line(ax: Axes, points: Sequence[Point], style: Style, y: Axis) -> None:
    x = [point.x for point in points]
    low = _at_least(y.least, (point.low for point in points))
    middle = _at_least(y.least, (point.y for point in points))
    high = _at_least(y.least, (point.high for point in points))
    if style.is_path:
        ax.vlines(x, low, high, color=style.colour, linewidth=3, alpha=0.35)
        ax.scatter(x, middle, s=np.linspace(12, 60, len(points)), c=style.colour, marker=style.marker)
        ax.plot(x, middle, color=style.colour, linewidth=1.2, linestyle=style.dashes)
        return
    ax.fill_between(x, low, high, color=style.colour, alpha=0.14, linewidth=0)
    ax.plot(
        x, middle, color=style.colour, marker=style.marker, markevery=max(1, len(points) // 8), markersize=3.2,
        linewidth=1.2, linestyle=style.dashes, label=style.label,
    )  # fmt: skip


def _at_least(least: float, values: Iterable[float]) -> np.ndarray:
    return np.maximum(list(values), least)


def _draw_mask(ax: Axes, name: str) -> None:
    _draw_picture(ax, np.where(PAPER_MASKS[name](32, 32), 255, 60))


def _draw_picture(ax: Axes, picture: np.ndarray) -> None:
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    ax.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    ax.spines[:].set(color=FRAME, linewidth=0.5)


def _add_legend(figure: Figure, panels: Sequence[Panel], title: str, size: Size) -> None:
    """Add one legend for all panels, with the methods that any of them has; the title stands above it."""
    labelled = [
        (style, style.label if size.has_labels else method)
        for method, style in method_styles().items()
        if any(method in panel.lines for panel in panels)
    ]
    columns = min(size.legend, max(1, len(labelled)))
    if len(labelled) == 4 and figure.get_figwidth() > WIDE:
        columns = 4
    figure.legend(
        handles=[_legend_line(style, label) for style, label in labelled], loc="outside upper center", ncols=columns,
        frameon=False, fontsize=size.ticks + 0.5, title=title or None,
        title_fontproperties={"size": size.font + 1, "weight": "bold"},
    )  # fmt: skip


def _legend_line(style: Style, label: str) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=style.colour, marker=style.marker, linestyle=style.dashes, label=label, markersize=4)
