"""Moderate overfitting, fully connected: 25,000 images to a train loss of 1e-4."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.plan import Cell
from recollect.paper.results import Results
from recollect.paper.scales import Scale
from recollect.paper.tables import against_paper
from recollect.scoring import APPROXIMATE

METHODS = ("iterate", "blind", "known", "refined", "known-400")
OPTIMIZERS = ("adam", "muon")
# Approximate recovery, percent, on the paper's three masks.
PAPER = {"iterate": (7.64, 0.78, 1.92), "blind": (54.2, 45.2, 56.9), "known": (80.6, 75.9, 84.2)}


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "train", mask, method)
        for fit in (scale.moderate("fc20", "lrelu", optimizer) for optimizer in OPTIMIZERS)
        for mask in scale.table_masks
        for method in METHODS
    ]


def table(scale: Scale, results: Results) -> str:
    rates = against_paper(results, cells(scale), PAPER, APPROXIMATE)
    return f"Approximate recovery in percent, with 95% intervals:\n\n{rates}"


EXPERIMENT = Experiment(
    id="moderate-fc",
    shows="approximate recovery, FC-20 LReLU on 25,000 Tiny ImageNet images, train loss 1e-4",
    where="Table 1",
    cells=cells,
    table=table,
)
