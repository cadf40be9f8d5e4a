"""The picture of the README: what is seen, what iterating and the blind method make of it, and the original.

    recollect demo
    python benchmarks/readme_picture.py demo/audit docs/figures/demo.png

Reads the pictures that an audit keeps for its report. One column for each mask, with training images that are evenly
spaced over the sample, so that none is chosen for its looks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from recollect.degradation import PAPER_MASKS

ROWS = ("degraded", "iterate", "blind", "original")


def main(audit: str, drawing: str) -> None:
    with np.load(Path(audit) / "samples.npz", allow_pickle=False) as pictures:
        draw(columns(dict(pictures)), Path(drawing))


def columns(pictures: dict[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
    """For each mask of the audit the four pictures of one image."""
    masks = [mask for mask in PAPER_MASKS if f"degraded/train/{mask}" in pictures]
    chosen = np.linspace(0, len(pictures["original/train"]) - 1, len(masks)).round().astype(int)
    return {mask: [pictures[name(row, mask)][image] for row in ROWS] for mask, image in zip(masks, chosen, strict=True)}


def name(row: str, mask: str) -> str:
    """Where samples.npz keeps a row's pictures under a mask."""
    if row == "original":
        return "original/train"
    return f"degraded/train/{mask}" if row == "degraded" else f"estimate/train/{mask}/{row}"


def draw(shown: dict[str, list[np.ndarray]], drawing: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.15 * len(shown) + 0.5, 1.15 * len(ROWS)), layout="constrained", facecolor="white")
    grid = figure.subplots(len(ROWS), len(shown), squeeze=False)
    for column, (mask, pictures) in enumerate(shown.items()):
        grid[0][column].set_title(mask, fontsize=9)
        for row, picture in enumerate(pictures):
            axes = grid[row][column]
            axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
    for row, label in enumerate(ROWS):
        grid[row][0].set_ylabel(label, fontsize=9)
    drawing.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(drawing, dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
