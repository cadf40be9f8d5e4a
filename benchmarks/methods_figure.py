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
from recollect.paper.render.draw import method_styles
from recollect.record_lines import LINES, read_records_of, record_line, write_lines
from recollect.records import Record, read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILLS = {"": "zero", "constant": "a constant colour", "noise": "noise", "images": "another image"}
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
            values = [rate for (_, *cell), rate in rates.items() if cell == [fill, method]]
            row.append(f"{100 * sum(values) / len(values):.1f}" if values else "-")
        rows.append(row)
    return markdown(["erased pixels hold", *methods_in(rates)], rows)


def draw(records: Iterable[Record], drawing: Path) -> None:
    """Draw a panel for each fill, a group for each mask, a bar for each method."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rates = accurate_rates(records)
    fills, methods = fills_in(rates), methods_in(rates)
    figure = Figure(figsize=(9, 1.7 * len(fills) + 0.6), layout="constrained")
    for number, fill in enumerate(fills, 1):
        axes = figure.add_subplot(len(fills), 1, number, ylim=(0, 105), ylabel="% recovered")
        axes.set_title(f"erased pixels hold {FILLS[fill]}", loc="left", fontsize=9)
        draw_bars(axes, {(mask, method): rate for (mask, f, method), rate in rates.items() if f == fill}, methods)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(methods), frameon=False, fontsize=9)
    drawing.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "methods"}):  # the same records give the same file
        figure.savefig(drawing, format="svg", metadata={"Date": None})


def draw_bars(axes: Axes, rates: Mapping[tuple[str, str], float], methods: Sequence[str]) -> None:
    masks, styles = list(dict.fromkeys(mask for mask, _ in rates)), method_styles()
    for position, method in enumerate(methods):
        x = [group + (position - (len(methods) - 1) / 2) * 0.16 for group in range(len(masks))]
        heights = [100 * rates.get((mask, method), 0.0) for mask in masks]
        axes.bar(x, heights, 0.15, color=styles[method].colour, label=method)
    axes.set_xticks(range(len(masks)), masks)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
