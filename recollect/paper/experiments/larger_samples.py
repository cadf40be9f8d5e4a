"""The two tables of moderate overfitting with more images attacked: all 1,000, and 2,500 of the 25,000."""

from __future__ import annotations

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.moderate_fc import GAMMA
from recollect.paper.experiments.perfect_fit import with_other_answers, with_references
from recollect.paper.render.tables import against_paper
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import APPROXIMATE

METHODS = ("iterate", "blind", "refined", "known")
WITH_GAMMA = ("blind", "refined", "known")


def cells(scale: Scale) -> list[Cell]:
    """List the cells: 25,000 images at the paper's gamma and at the other of the table."""
    many, fewer = scale.moderate("fc20", "lrelu", "muon"), scale.moderate("unet", "softplus", "muon")
    return [
        *_cells_of(scale, fewer),
        *_cells_of(scale, many),
        *(cell for cell in _cells_of(scale, many, GAMMA) if cell.method in WITH_GAMMA),
    ]


def _cells_of(scale: Scale, fit: Fit, gamma: float | None = None) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "train", mask, method, gamma=gamma, attacked=scale.sampled[fit.kind])
        for mask in scale.table_masks
        for method in with_references(fit, METHODS)
    ]


def table(scale: Scale, store: Store) -> str:
    rates = against_paper(store, with_other_answers(cells(scale)), {}, APPROXIMATE)
    attacked = ", ".join(f"{count} with {kind.upper()}" for kind, count in scale.sampled.items())
    return f"Approximate recovery in percent, with 95% intervals; images attacked: {attacked}.\n\n{rates}"


EXPERIMENT = Experiment(
    name="larger-samples",
    summary="approximate recovery of all 1,000 CIFAR-10 images, and of 2,500 of 25,000",
    location=BEYOND,
    cells=cells,
    table=table,
    order=23,
)
