"""The same recovery on images that were never trained on: what is found there is not memory."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.perfect_fit import fits
from recollect.paper.plan import Cell
from recollect.paper.scales import Scale

METHODS = ("iterate", "blind", "known", "refined")


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "control", mask, method)
        for fit in fits(scale)
        for mask in scale.masks
        for method in METHODS
    ]


EXPERIMENT = Experiment(
    id="control",
    shows="recovery of as many images that were not trained on, train loss 1e-8",
    where="Section 4, text",
    cells=cells,
)
