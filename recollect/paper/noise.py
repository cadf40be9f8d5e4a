"""Erased pixels and noise on the others: FC-10 and FC-20, mask 1."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.plan import Cell
from recollect.paper.scales import Scale

METHODS = ("iterate", "blind", "known", "refined", "known-400")
NETWORKS = (("fc10", "adam"), ("fc20", "adam"), ("fc10", "muon"))
NOISE = 0.02


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, loss, "train", scale.masks[0], method, NOISE)
        for fit in (scale.perfect(kind, "lrelu", optimizer) for kind, optimizer in NETWORKS)
        for loss in reversed(fit.milestones)
        for method in METHODS
    ]


EXPERIMENT = Experiment(
    id="noise",
    shows="recovery with noise of 0.02 on top of mask 1, FC-10 and FC-20 LReLU",
    where="Appendix, figure `Additive noise results`",
    cells=cells,
)
