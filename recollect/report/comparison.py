"""One picture for a notebook: training and unseen images side by side, as given, result and original."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from recollect.records import SET_LABELS

if TYPE_CHECKING:
    from PIL.Image import Image

ROWS = ("given", "result", "original")
INCHES, DOTS = 1.1, 120  # of a column, and of an inch
LOWEST = 0.85  # inches of a row, which holds its label
LABEL = 0.33  # inches, for the labels of rows and for the titles; a phone shows the picture at half its size
PAPER = "white"


def draw_comparison(
    samples: Mapping[str, np.ndarray], mask: str, method: str, count: int = 4, kind: str = "images"
) -> Image:
    """Draw `count` items of each set under a mask: evenly spaced over the sample, so none is chosen by eye."""
    groups = {f"{SET_LABELS[name]} {kind}": _group(samples, name, mask, method, count) for name in _sets(samples)}
    return _drawn(groups)


def _sets(samples: Mapping[str, np.ndarray]) -> list[str]:
    return [name for name in SET_LABELS if f"original/{name}" in samples]


def _group(samples: Mapping[str, np.ndarray], name: str, mask: str, method: str, count: int) -> list[np.ndarray]:
    """Return the rows of one set: count x H x W x C each."""
    pictures = [samples[f"degraded/{name}/{mask}"], samples[f"estimate/{name}/{mask}/{method}"]]
    original = samples[f"original/{name}"]
    chosen = np.linspace(0, len(original) - 1, min(count, len(original))).round().astype(int)
    return [row[chosen] for row in (*pictures, original)]


def _drawn(groups: Mapping[str, list[np.ndarray]]) -> Image:
    from matplotlib.figure import Figure
    from PIL import Image

    columns = [len(rows[0]) for rows in groups.values()]
    height, width = next(iter(groups.values()))[0].shape[1:3]
    row = max(INCHES * height / width, LOWEST)
    widths = [INCHES * count for count in columns]
    widths[0] += LABEL  # so that the pictures of both sets are of one size
    size = (sum(widths), row * len(ROWS) + LABEL)
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    parts = figure.subfigures(1, len(groups), width_ratios=widths, squeeze=False)[0]
    for part, (title, rows) in zip(parts, groups.items(), strict=True):
        part.suptitle(title, fontsize=14)
        grid = part.subplots(len(ROWS), len(rows[0]), squeeze=False)
        for axes, picture in zip(grid.flat, np.concatenate(rows), strict=True):
            axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        if title == next(iter(groups)):
            for axes, label in zip(grid[:, 0], ROWS, strict=True):
                axes.set_ylabel(label, fontsize=12)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS, metadata={"Software": None})
    return Image.open(file)
