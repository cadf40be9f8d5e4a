"""The estimate of an image, round by round: the blind recovery above, iterating the autoencoder below."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing.traces import trace_rounds
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.scales import Scale
from recollect.paper.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = 3
SHOWN = (1, 2, 5, 40)  # rounds of blind, applications of the autoencoder


def fit(scale: Scale) -> Fit:
    return scale.pictured("fc10", "lrelu", "adam")


def compute(workspace: Workspace, scale: Scale, fit: Fit) -> Arrays:
    f, images = workspace.best_network(fit), workspace.images(fit, "train")[:IMAGES]
    cells = [Cell(fit, fit.milestones[-1], "train", scale.masks[-1], name) for name in ("blind", "iterate")]
    methods = {cell.method: partial(cell.build_method(), f) for cell in cells}
    return trace_rounds(images, cells[0].observe(images), methods)


def draw(arrays: Arrays) -> Figure:
    from recollect.paper.render.draw import picture_figure

    rows: dict[str, list[np.ndarray]] = {}
    for i in range(sum(key.startswith("original/") for key in arrays)):
        for name in ("blind", "iterate"):
            frames = arrays[f"estimate/{name}/{i}"]
            path = [frames[min(n, len(frames)) - 1] for n in SHOWN]
            rows[f"{name}, image {i + 1}"] = [arrays[f"degraded/{i}"], *path, arrays[f"original/{i}"]]
    return picture_figure(rows, ["damaged", *map(str, SHOWN), "original"])


EXPERIMENT = Experiment(
    name="recovery-path",
    summary="the estimate of the image along the rounds, blind against iterating the autoencoder",
    location="Figure 1",
    pictures=Pictures(fit, compute, draw),
    order=11,
)
