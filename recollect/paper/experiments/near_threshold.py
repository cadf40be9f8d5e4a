"""Approximate recoveries: images whose error is just below the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing import recover
from recollect.auditing.pictures import set_pictures
from recollect.images import Images
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.scales import MODERATE, Scale
from recollect.paper.workspace import Workspace
from recollect.scoring import APPROXIMATE, mse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEARCHED, SHOWN = 1000, 8


def fit(scale: Scale) -> Fit:
    return scale.pictured("fc20", "lrelu", "muon", MODERATE)


def compute(workspace: Workspace, scale: Scale, fit: Fit) -> Arrays:
    """Recover under each mask of the table; keep the recoveries whose error is closest below the threshold.

    If there are none, there are no arrays and no picture.
    """
    f, images = workspace.best_network(fit), workspace.images(fit, "train")[:SEARCHED]
    candidates: list[tuple[float, np.ndarray, np.ndarray]] = []
    for name in scale.table_masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, "blind")
        estimate = recover(cell.build_method(), f, cell.observe(images)).estimate
        errors = mse(estimate, images.pixels).numpy()
        below = np.flatnonzero(errors < APPROXIMATE)
        chosen = below[np.argsort(-errors[below])][:SHOWN]
        if not len(chosen):
            continue
        originals, recovered = _pixels(images[chosen]), _pixels(Images(estimate[chosen].clamp(0, 1)))
        candidates += list(zip(errors[chosen], originals, recovered, strict=True))
    if not candidates:
        return {}
    shown = sorted(candidates, key=lambda candidate: -candidate[0])[:SHOWN]
    errors, originals, recovered = (np.stack(column) for column in zip(*shown, strict=True))
    return {"mse": errors, "original": originals, "recovered": recovered}


def draw(arrays: Arrays) -> Figure:
    from recollect.paper.render.draw import picture_figure

    rows = {"original": list(arrays["original"]), "recovered": list(arrays["recovered"])}
    return picture_figure(rows, [f"{error:.1e}" for error in arrays["mse"]])


def _pixels(images: Images) -> np.ndarray:
    return set_pictures(images, np.arange(len(images)))["original"]


EXPERIMENT = Experiment(
    name="near-threshold",
    summary="recovered images whose MSE is closest below 5e-4, beside their originals",
    location="Figure 6",
    pictures=Pictures(fit, compute, draw),
    order=12,
)
