"""Moderate overfitting, fully connected: 25,000 images to a train loss of 1e-4."""

from __future__ import annotations

from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.moderate import CHECKED, cells_of, table_beside_paper
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, with_references
from recollect.paper.scales import Scale

# Approximate recovery, percent, on the paper's three masks.
PAPER = {"iterate": (7.64, 0.78, 1.92), "blind": (54.2, 45.2, 56.9), "known": (80.6, 75.9, 84.2)}

GAMMA = 1.0  # beside the paper's 0.1: with many images it recovers more (docs/research/reproduction.md)


def cells(scale: Scale) -> list[Cell]:
    fits = [scale.moderate("fc20", "lrelu", "muon")]  # Adam stalls: benchmarks/moderate_overfitting.py
    own = with_references(fits[0], WITH_NETWORK)
    return cells_of(scale, fits, own) + cells_of(scale, fits, CHECKED, gamma=GAMMA)


EXPERIMENT = Experiment(
    name="moderate-fc",
    summary="approximate recovery, FC-20 LReLU on 25,000 Tiny ImageNet images, train loss 1e-4",
    location="Table 1",
    cells=cells,
    table=table_beside_paper(cells, PAPER),
    order=7,
)
