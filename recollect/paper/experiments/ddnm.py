"""What a diffusion model that never saw the autoencoder makes of the same degraded images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing import recover
from recollect.auditing.pictures import cell_pictures, set_pictures
from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = 3


def fit(scale: Scale) -> Fit:
    """Only its images matter: the prior is of their size."""
    return scale.perfect("unet", "softplus", "muon")


def take(bench: Bench, scale: Scale, fit: Fit) -> Arrays:
    images, some = bench.images(fit, "train")[:IMAGES], np.arange(IMAGES)
    prior = bench.prior(fit.images).to(bench.device)
    arrays = {"original": set_pictures(images, some)["original"]}
    for name in scale.masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, GENERIC)
        seen = cell.observe(images)
        found = cell_pictures(images, seen, recover(cell.settled_method(prior), None, seen), some)
        arrays |= {f"{name}/{kind}": found[kind] for kind in ("degraded", "estimate")}
    return arrays


def draw(arrays: Arrays) -> Figure:
    from recollect.paper.render.draw import picture_figure

    masks = [key.split("/")[0] for key in arrays if key.endswith("/degraded")]
    rows: dict[str, list[np.ndarray]] = {}
    for i, original in enumerate(arrays["original"]):
        rows[f"degraded, image {i + 1}"] = [*(arrays[f"{m}/degraded"][i] for m in masks), original]
        rows[f"DDNM, image {i + 1}"] = [*(arrays[f"{m}/estimate"][i] for m in masks), original]
    return picture_figure(rows, [*masks, "original"])


EXPERIMENT = Experiment(
    id="ddnm",
    shows="original, degraded, and what DDNM makes of it with a diffusion prior that never saw the autoencoder",
    where="Figure 11",
    pictures=Pictures(fit, take, draw, needs_weights=False, needs_prior=True),
)
