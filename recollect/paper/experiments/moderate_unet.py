"""Moderate overfitting, U-Net: 1,000 images to a train loss of 1e-4."""

from __future__ import annotations

from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.moderate import cells_of, table_beside_paper
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, with_references
from recollect.paper.scales import Scale

NETWORKS = (("softplus", "muon"), ("softplus", "adam"), ("lrelu", "muon"), ("prelu", "muon"))
# Approximate recovery, percent, on the paper's three masks; its table shows Softplus alone.
PAPER = {"iterate": (0.6, 10.2, 1.2), "blind": (50.3, 75.9, 22.9), "known": (59.3, 86.2, 28.8)}


def cells(scale: Scale) -> list[Cell]:
    fits = [scale.moderate("unet", activation, optimizer) for activation, optimizer in NETWORKS]
    return cells_of(scale, fits, with_references(fits[0], WITH_NETWORK))


EXPERIMENT = Experiment(
    name="moderate-unet",
    summary="approximate recovery, U-Net on 1,000 CIFAR-10 images, train loss 1e-4",
    location="Table 2",
    cells=cells,
    table=table_beside_paper(cells, PAPER),
    order=8,
)
