"""Damaged images as generic methods restore them that never saw the autoencoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing import recover
from recollect.auditing.pictures import cell_pictures, set_pictures
from recollect.methods import DDNM, Biharmonic
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.scales import Scale
from recollect.paper.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = 3


def fit(scale: Scale) -> Fit:
    """Choose a training for its images alone: the prior is of their size."""
    return scale.pictured("unet", "softplus", "muon")


def compute(workspace: Workspace, scale: Scale, fit: Fit) -> Arrays:
    images, positions = workspace.images(fit, "train")[:IMAGES], np.arange(IMAGES)
    prior = workspace.prior(fit.images).to(workspace.device)
    arrays = {"original": set_pictures(images, positions)["original"]}
    for name in scale.masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, DDNM.name)
        seen = cell.observe(images)
        for method in (cell.build_method(prior), Biharmonic()):
            pictures = cell_pictures(images, seen, recover(method, None, seen), positions)
            arrays |= {f"{name}/degraded": pictures["degraded"], f"{name}/{method.name}": pictures["estimate"]}
    return arrays


def draw(arrays: Arrays) -> Figure:
    from recollect.paper.render.draw import picture_figure

    masks = [key.split("/")[0] for key in arrays if key.endswith("/degraded")]
    rows: dict[str, list[np.ndarray]] = {}
    for i, original in enumerate(arrays["original"]):
        rows[f"damaged, image {i + 1}"] = [*(arrays[f"{mask}/degraded"][i] for mask in masks), original]
        for name in (DDNM.name, Biharmonic.name):
            rows[f"{name}, image {i + 1}"] = [*(arrays[f"{mask}/{name}"][i] for mask in masks), original]
    return picture_figure(rows, [*masks, "original"])


EXPERIMENT = Experiment(
    name="ddnm",
    summary="original, damaged, and restored by DDNM and biharmonic, which never saw the autoencoder",
    location="Figure 11",
    pictures=Pictures(fit, compute, draw, needs_weights=False, needs_prior=True),
    order=13,
)
