"""What an approximate recovery looks like: images whose error is just below the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing import recover
from recollect.auditing.pictures import set_pictures
from recollect.errors import InputError
from recollect.images import Images
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale
from recollect.scoring import APPROXIMATE, mse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOWEST = 4e-4  # the paper shows errors from here to the threshold; where there are none, the closest below
SEARCHED, SHOWN = 1000, 8


def fit(scale: Scale) -> Fit:
    return scale.moderate("fc20", "lrelu", "muon")


def take(bench: Bench, scale: Scale, fit: Fit) -> Arrays:
    """Recover under each mask of the table; keep the recoveries whose error is closest below the threshold."""
    f, images = bench.best_weights(fit), bench.images(fit, "train")[:SEARCHED]
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    for name in scale.table_masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, "blind")
        estimate = recover(cell.settled_method(), f, cell.observe(images)).estimate
        errors = mse(estimate, images.pixels).numpy()
        below = np.flatnonzero(errors < APPROXIMATE)
        chosen = below[np.argsort(-errors[below])][:SHOWN]
        originals, recovered = (_colours(pixels) for pixels in (images[chosen], Images(estimate[chosen].clamp(0, 1))))
        found += list(zip(errors[chosen], originals, recovered, strict=True))
    if not found:
        raise InputError(f"No image is recovered with an error below {APPROXIMATE:g}: there is nothing to show.")
    found = sorted(found, key=lambda one: -one[0])[:SHOWN]
    error, original, recovered = (np.stack([one[i] for one in found]) for i in range(3))
    return {"mse": error, "original": original, "recovered": recovered}


def draw(arrays: Arrays) -> Figure:
    from recollect.paper.render.draw import picture_figure

    rows = {"original": list(arrays["original"]), "recovered": list(arrays["recovered"])}
    return picture_figure(rows, [f"{error:.1e}" for error in arrays["mse"]])


def _colours(images: Images) -> np.ndarray:
    return set_pictures(images, np.arange(len(images)))["original"]


EXPERIMENT = Experiment(
    id="near-threshold",
    shows="recovered images with an MSE between 4e-4 and 5e-4, beside their originals",
    where="Figure 6",
    pictures=Pictures(fit, take, draw),
)
