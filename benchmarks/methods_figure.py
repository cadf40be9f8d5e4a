"""The figure and the table of fills in docs/methods.md: what each method recovers, by what erased pixels hold.

    recollect audit demo/training/loss-1e-08.safetensors --train 'photos?count=40&size=32' \
        --fill zero,constant,noise,images --out fills
    python benchmarks/methods_figure.py fills docs/figures/methods.svg --keep results/fills

Reads the records of an audit, draws nothing that is not in them, and keeps them, packed, so that the figure can be
drawn again from results/fills.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from recollect.records import Record, read_records, write_record

COLOURS = {"iterate": "#9aa5b1", "blind": "#1f5fa8", "zero-rule": "#c9a227", "refined": "#c8503c", "known": "#2f2f2f"}
FILLS = {"": "zero", "constant": "a constant colour", "noise": "noise", "images": "another image"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audit", type=Path, help="the folder of an audit, or of the records that were kept of one")
    parser.add_argument("drawing", type=Path, help="the SVG to write")
    parser.add_argument("--keep", type=Path, help="pack the records into this folder")
    options = parser.parse_args()
    records = read_records(options.audit / "cells")
    if not records:
        parser.error(f"there are no records in {options.audit / 'cells'}")
    draw(records, options.drawing)
    print(table(records))
    for record in records if options.keep else ():
        write_record(options.keep / "cells", record.compact(), packed=True)


def table(records: Iterable[Record]) -> str:
    """Accurate rates in percent by fill, the mean over the masks."""
    rates: dict[tuple[str, str], list[float]] = {}
    for record in (r for r in records if r.cell["set"] == "train"):
        rates.setdefault((place_of(record)[1], str(record.cell["method"])), []).append(record.score.accurate.value)
    rows = []
    for fill in FILLS:
        if not any(found == fill for found, _ in rates):
            continue
        means = [rates.get((fill, method)) for method in COLOURS]
        shown = [f"{100 * sum(values) / len(values):.1f}" if values else "-" for values in means]
        rows.append([fill or "zero", *shown])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def draw(records: Iterable[Record], drawing: Path) -> None:
    """A panel for each fill; a group for each mask; a bar for each method."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rates = {(*place_of(r), r.cell["method"]): r.score.accurate.value for r in records if r.cell["set"] == "train"}
    fills = [fill for fill in FILLS if any(f == fill for _, f, _ in rates)]
    masks = list(dict.fromkeys(m for m, _, _ in rates))
    methods = [m for m in COLOURS if any(found == m for _, _, found in rates)]
    figure = Figure(figsize=(9, 1.7 * len(fills) + 0.6), layout="constrained")
    for number, fill in enumerate(fills):
        axes = figure.add_subplot(len(fills), 1, number + 1, ylim=(0, 105), ylabel="% recovered")
        axes.set_title(f"erased pixels hold {FILLS[fill]}", loc="left", fontsize=9)
        for place, method in enumerate(methods):
            at = [i + (place - (len(methods) - 1) / 2) * 0.16 for i in range(len(masks))]
            bars = [100 * rates.get((mask, fill, method), 0.0) for mask in masks]
            axes.bar(at, bars, 0.15, color=COLOURS[method], label=method if number == 0 else None)
        axes.set_xticks(range(len(masks)), masks)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=len(methods), frameon=False, fontsize=9)
    drawing.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "methods"}):  # the same records give the same file
        figure.savefig(drawing, format="svg", metadata={"Date": None})


def place_of(record: Record) -> tuple[str, str]:
    """Mask and fill: half+noise is the mask half, filled with noise."""
    name, _, fill = str(record.cell["mask"]).partition("+")
    return name, fill


if __name__ == "__main__":
    main()
