"""The picture of the README: images as given, result and original, three that were trained on and three unseen.

    recollect demo
    python benchmarks/readme_picture.py demo/audit docs/figures/hero.png

Reads the pictures that an audit keeps for its report. The images are evenly spaced over the sample, so that none is
chosen for its appearance.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from recollect.degradation import PAPER_MASKS
from recollect.palette import PALETTE
from recollect.scoring import APPROXIMATE

SETS = {"train": ("Training images", "blue"), "control": ("Unseen images", "grey")}  # in the colours of the report
ROWS = ("given", "result", "original")
IMAGES = 3
LEFT, WIDTH = (0.05, 0.55), 0.44  # of the two halves, as shares of the picture
METHOD = "refined"


def main(audit: str, drawing: str) -> None:
    with np.load(Path(audit) / "samples.npz", allow_pickle=False) as pictures:
        draw({name: columns(dict(pictures), name) for name in SETS}, Path(drawing))


def columns(pictures: dict[str, np.ndarray], part: str) -> list[list[np.ndarray]]:
    """Choose the pictures of a few images, each under another mask."""
    originals = pictures[f"original/{part}"]
    masks = [mask for mask in PAPER_MASKS if f"estimate/{part}/{mask}/{METHOD}" in pictures]
    chosen = np.linspace(0, len(originals) - 1, IMAGES + 2).round().astype(int)[1:-1]
    under = [masks[round(index)] for index in np.linspace(0, len(masks) - 1, IMAGES)]
    return [
        [
            pictures[f"degraded/{part}/{mask}"][image],
            pictures[f"estimate/{part}/{mask}/{METHOD}"][image],
            originals[image],
        ]
        for image, mask in zip(chosen, under, strict=True)
    ]


def is_recovered(pictures: list[np.ndarray]) -> bool:
    """Compare the recovery with the original, both as 8-bit values."""
    _, estimate, original = (picture / 255 for picture in pictures)
    return bool(np.mean((estimate - original) ** 2) < APPROXIMATE)


def draw(shown: dict[str, list[list[np.ndarray]]], drawing: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.0), facecolor="white")
    for (part, images), left in zip(shown.items(), LEFT, strict=True):
        title, colour = SETS[part]
        counts = f"{sum(map(is_recovered, images))} of {len(images)} recovered"
        middle = left + WIDTH / 2
        figure.text(middle, 0.95, title, fontsize=15, ha="center", color=PALETTE[colour].light)
        figure.text(middle, 0.88, counts, fontsize=15, ha="center", fontweight="bold", color=PALETTE[colour].light)
        spots = figure.add_gridspec(
            len(ROWS), len(images), left=left, right=left + WIDTH, bottom=0.02, top=0.85, wspace=0.06, hspace=0.06
        )
        for column, pictures in enumerate(images):
            for row, picture in enumerate(pictures):
                axes = figure.add_subplot(spots[row, column])
                axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set_visible(False)
                if part == "train" and column == 0:
                    axes.set_ylabel(ROWS[row], fontsize=15)
    drawing.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(drawing, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
