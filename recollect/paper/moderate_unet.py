"""Moderate overfitting, U-Net: 1,000 images to a train loss of 1e-4."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.plan import GENERIC, Cell
from recollect.paper.results import Results
from recollect.paper.scales import Scale
from recollect.paper.tables import against_paper
from recollect.scoring import APPROXIMATE

METHODS = ("iterate", "blind", "known", "refined", "known-400", GENERIC)
NETWORKS = (("softplus", "muon"), ("softplus", "adam"), ("lrelu", "muon"), ("prelu", "muon"))
# Approximate recovery, percent, on the paper's three masks; its table is of Softplus alone.
PAPER = {"iterate": (0.6, 10.2, 1.2), "blind": (50.3, 75.9, 22.9), "known": (59.3, 86.2, 28.8)}


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "train", mask, method)
        for fit in (scale.moderate("unet", activation, optimizer) for activation, optimizer in NETWORKS)
        for mask in scale.table_masks
        for method in METHODS
    ]


def table(scale: Scale, results: Results) -> str:
    rates = against_paper(results, cells(scale), PAPER, APPROXIMATE)
    return f"Approximate recovery in percent, with 95% intervals:\n\n{rates}"


EXPERIMENT = Experiment(
    id="moderate-unet",
    shows="approximate recovery, U-Net on 1,000 CIFAR-10 images, train loss 1e-4",
    where="Table 2",
    cells=cells,
    table=table,
)
