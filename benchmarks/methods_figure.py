"""The figure and the table of fills in docs/concepts/methods.md: what each method recovers, by what erased pixels hold.

    recollect audit demo/training/loss-1e-08.safetensors --train 'photos?count=40&size=32' \
        --fill zero,constant,noise,images --out fills
    python benchmarks/methods_figure.py fills docs/figures/methods.svg --keep results/fills.jsonl

Everything comes from the records of an audit; --keep packs them into one file, from which the figure can be drawn
again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reporting import table as markdown

from recollect.methods import METHODS
from recollect.paper.render.draw import method_styles, save_chart
from recollect.record_lines import LINES, read_records_of, record_line, write_lines
from recollect.records import Record, read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "erased:"
FILLS = {"": "black", "constant": "a constant colour", "noise": "noise", "images": "another image"}
Rates = dict[tuple[str, str, str], float]  # by mask, fill and method


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audit", type=Path, help="the folder of an audit, or the packed records of one")
    parser.add_argument("drawing", type=Path, help="the SVG to write")
    parser.add_argument("--keep", type=Path, help="pack the records into this file")
    options = parser.parse_args(arguments)
    records = read_records_of(options.audit) if options.audit.suffix == LINES else read_records(options.audit / "cells")
    if not records:
        parser.error(f"there are no records in {options.audit}")
    draw(records, options.drawing)
    print(table(records))
    if options.keep:
        write_lines(options.keep, [record_line(record.compact()) for record in records])


def accurate_rates(records: Iterable[Record]) -> Rates:
    """Read the accurate rate of every mask, fill and method on training images."""
    rates = {}
    for record in records:
        if record.cell["set"] == "train":
            mask, _, fill = str(record.cell["mask"]).partition("+")  # half+noise: the mask half, filled with noise
            rates[mask, fill, str(record.cell["method"])] = record.score.accurate.value
    return rates


def methods_in(rates: Rates) -> list[str]:
    """List the methods that have records, in the order of their legend."""
    recorded = {method for _, _, method in rates}
    return [name for name in METHODS if name in recorded]


def fills_in(rates: Rates) -> list[str]:
    recorded = {fill for _, fill, _ in rates}
    return [fill for fill in FILLS if fill in recorded]


def table(records: Iterable[Record]) -> str:
    """Make a row for each fill: accurate rates in percent, the mean over the masks."""
    rates = accurate_rates(records)
    rows = []
    for fill in fills_in(rates):
        row = [fill or "zero"]
        for method in methods_in(rates):
            values = values_of(rates, fill, method)
            row.append(f"{100 * sum(values) / len(values):.1f}" if values else "-")
        rows.append(row)
    return markdown(["erased pixels hold", *methods_in(rates)], rows)


def draw(records: Iterable[Record], drawing: Path) -> None:
    """Draw a panel for each fill with a bar for each method: the mean over the masks, and a dot for each mask."""
    from matplotlib.figure import Figure

    rates = accurate_rates(records)
    fills, methods = fills_in(rates), methods_in(rates)
    figure = Figure(figsize=(5, 1.6 * -(-len(fills) // 2) + 0.9), layout="constrained")
    figure.suptitle("Training images recovered accurately, %", x=0.02, ha="left", fontsize=12)
    panels = figure.subplots(-(-len(fills) // 2), 2, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, fill in zip(panels, fills, strict=False):
        axes.set_title(f"{TITLE} {FILLS[fill]}", loc="left", fontsize=9.5)
        draw_bars(axes, {method: values_of(rates, fill, method) for method in methods})
    for axes in panels[len(fills) :]:
        axes.axis("off")
    save_chart(figure, drawing.parent, drawing.stem)


def values_of(rates: Rates, fill: str, method: str) -> list[float]:
    """List the rates of a method with a fill, one for each mask."""
    return [rate for (_, *cell), rate in rates.items() if cell == [fill, method]]


def draw_bars(axes: Axes, rates: Mapping[str, Sequence[float]]) -> None:
    """Draw the methods from top to bottom, each with its mean; a method without records is named as not run."""
    styles = method_styles()
    for position, (method, values) in enumerate(rates.items()):
        if not values:
            axes.text(2, position, "not run", va="center", fontsize=9)
            continue
        percents = [100 * value for value in values]
        mean = sum(percents) / len(percents)
        axes.barh(position, mean, 0.7, color=styles[method].colour)
        axes.plot(percents, [position] * len(percents), "o", ms=3.5, mfc="white", mec="black", mew=0.7)
        axes.text(106, position, f"{mean:.0f}", va="center", fontsize=9)
    axes.set(xlim=(-3, 122), xticks=[0, 50, 100], ylim=(len(rates) - 0.4, -0.6))
    axes.set_yticks(range(len(rates)), rates, fontsize=9.5)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
