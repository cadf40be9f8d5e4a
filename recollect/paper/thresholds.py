"""Recovery rate as a function of the threshold: U-Nets, mask 6."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.perfect_fit import BEYOND, METHODS, fits
from recollect.paper.plan import Cell
from recollect.paper.scales import Scale


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "train", scale.masks[-1], method)
        for fit in fits(scale, ("unet",))
        for method in (*METHODS, *BEYOND)
    ]


EXPERIMENT = Experiment(
    id="thresholds",
    shows="recovery rate against the MSE threshold from 1e-3 to 1e-7, U-Net, mask 6",
    where="Appendix, figure `varying_threshold`",
    cells=cells,
)
