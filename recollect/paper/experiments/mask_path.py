"""The estimate of the mask, round by round, under each of the six masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.auditing.traces import trace_rounds
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Arrays, Experiment, Pictures
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = 6  # shown; from then on the last estimate


def fit(scale: Scale) -> Fit:
    return scale.perfect("fc10", "lrelu", "adam")


def take(bench: Bench, scale: Scale, fit: Fit) -> Arrays:
    """The first training image under each mask, recovered with the camera on."""
    f, image = bench.best_weights(fit), bench.images(fit, "train")[:1]
    arrays: dict[str, np.ndarray] = {}
    for name in scale.masks:
        cell = Cell(fit, fit.milestones[-1], "train", name, "blind")
        blind, seen = cell.settled_method(), cell.observe(image)
        shots = trace_rounds(image, seen, {"blind": lambda y, trace, blind=blind: blind(f, y, trace=trace)})
        first = blind.start(seen.y).expand(seen.y).keep[0].float().mean(0).numpy()
        truth = seen.truth.expand(seen.y).keep[0].float().mean(0).numpy()  # type: ignore[attr-defined]
        arrays |= {
            f"degraded/{name}": shots["degraded/0"], f"estimates/{name}": shots["mask/blind/0"],
            f"start/{name}": (255 * first).astype(np.uint8), f"truth/{name}": (255 * truth).astype(np.uint8),
        }  # fmt: skip
    return arrays


def draw(arrays: Arrays) -> Figure:
    """A row a mask: what is seen, the first estimate, the rounds, the last estimate, the truth."""
    from recollect.paper.render.draw import picture_figure

    names = [key.removeprefix("truth/") for key in arrays if key.startswith("truth/")]
    rows = {}
    for name in names:
        rounds = list(arrays[f"estimates/{name}"])
        shown = [rounds[min(i, len(rounds) - 1)] for i in range(ROUNDS)]
        middle = [arrays[f"start/{name}"], *shown, rounds[-1]]
        rows[name] = [arrays[f"degraded/{name}"], *middle, arrays[f"truth/{name}"]]
    return picture_figure(rows, ["seen", "start", *(f"round {i + 1}" for i in range(ROUNDS)), "last", "true mask"])


EXPERIMENT = Experiment(
    id="mask-path",
    shows="the estimate of the mask along the rounds of the blind method",
    where="Figure 2",
    pictures=Pictures(fit, take, draw),
)
