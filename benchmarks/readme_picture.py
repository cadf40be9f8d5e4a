"""The picture of the README: images as given, recovered and original, three that were trained on and three unseen.

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

SETS = {"train": ("Trained on", "orange"), "control": ("Unseen", "blue")}
ROWS = ("given", "result", "original")
IMAGES = 3
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

    figure = Figure(figsize=(7.6, 4.2), layout="constrained", facecolor="white")
    halves = np.asarray(figure.subfigures(1, len(shown), wspace=0.06))
    for half, (part, images) in zip(halves, shown.items(), strict=True):
        title, colour = SETS[part]
        title = f"{title}: {sum(map(is_recovered, images))} of {len(images)} recovered"
        half.suptitle(title, fontsize=14, fontweight="bold", color=PALETTE[colour].light)
        grid = half.subplots(len(ROWS), len(images), squeeze=False)
        for column, pictures in enumerate(images):
            for axes, picture in zip(grid[:, column], pictures, strict=True):
                axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set_visible(False)
        if part == "train":
            for axes, label in zip(grid[:, 0], ROWS, strict=True):
                axes.set_ylabel(label, fontsize=15)
    drawing.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(drawing, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
