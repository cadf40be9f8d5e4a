"""The figure of docs/methods.md: what each method recovers, by mask and by what erased pixels hold.

    recollect audit demo/training/loss-1e-08.safetensors --train 'photos?count=40&size=32' \
        --fill zero,constant,noise,images --out fills
    python benchmarks/methods_figure.py fills docs/figures/methods.svg

Reads the records of an audit, draws nothing that is not in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from recollect.records import Record, read_records

COLOURS = {"iterate": "#9aa5b1", "blind": "#1f5fa8", "zero-rule": "#c9a227", "refined": "#c8503c", "known": "#2f2f2f"}
FILLS = {"": "zero", "constant": "a constant colour", "noise": "noise", "images": "another image"}


def main(folder: str, drawing: str) -> None:
    draw(read_records(Path(folder) / "cells"), Path(drawing))


def draw(records: Iterable[Record], drawing: Path) -> None:
    """A panel for each fill; a group for each mask; a bar for each method."""
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
    figure.savefig(drawing, format="svg", metadata={"Date": None})


def place_of(record: Record) -> tuple[str, str]:
    """Mask and fill: half+noise is the mask half, filled with noise."""
    name, _, fill = str(record.cell["mask"]).partition("+")
    return name, fill


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
