"""The estimate of the mask, round by round, under each of the six masks."""

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

ROUNDS = 6  # shown; after its last round an estimate is repeated


def fit(scale: Scale) -> Fit:
    return scale.pictured("fc10", "lrelu", "adam")


def compute(workspace: Workspace, scale: Scale, fit: Fit) -> Arrays:
    """Recover the first training image under each mask and keep every round."""
    f, image = workspace.best_network(fit), workspace.images(fit, "train")[:1]
    arrays: dict[str, np.ndarray] = {}
    for name in scale.masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, "blind")
        blind, seen = cell.build_method(), cell.observe(image)
        frames = trace_rounds(image, seen, {"blind": partial(blind, f)})
        first = blind.start(seen.y).expand(seen.y).keep[0].float().mean(0).numpy()
        truth = seen.truth.expand(seen.y).keep[0].float().mean(0).numpy()  # type: ignore[attr-defined]
        arrays |= {
            f"degraded/{name}": frames["degraded/0"], f"estimates/{name}": frames["mask/blind/0"],
            f"start/{name}": (255 * first).astype(np.uint8), f"truth/{name}": (255 * truth).astype(np.uint8),
        }  # fmt: skip
    return arrays


def draw(arrays: Arrays) -> Figure:
    """Draw a row for each mask: the damaged image, the first estimate, the rounds, the last estimate, the truth."""
    from recollect.paper.render.draw import picture_figure

    names = [key.removeprefix("truth/") for key in arrays if key.startswith("truth/")]
    rows = {}
    for name in names:
        rounds = list(arrays[f"estimates/{name}"])
        shown = [rounds[min(i, len(rounds) - 1)] for i in range(ROUNDS)]
        middle = [arrays[f"start/{name}"], *shown, rounds[-1]]
        rows[name] = [arrays[f"degraded/{name}"], *middle, arrays[f"truth/{name}"]]
    return picture_figure(rows, ["damaged", "start", *(f"round {i + 1}" for i in range(ROUNDS)), "last", "true mask"])


EXPERIMENT = Experiment(
    name="mask-path",
    summary="the estimate of the mask along the rounds of blind recovery",
    location="Figure 2",
    pictures=Pictures(fit, compute, draw),
    order=10,
)
