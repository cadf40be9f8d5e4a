"""What the two tables of moderate overfitting share: three masks, and each rate beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiments.perfect_fit import EVERY
from recollect.paper.render.tables import against_paper, order_holds
from recollect.paper.scales import Scale
from recollect.paper.store import Results
from recollect.scoring import APPROXIMATE

CHECKED = ("blind", "known", "refined")  # on images that were not trained on too


def cells_of(
    scale: Scale, fits: Iterable[Fit], methods: Sequence[str] = EVERY, gamma: float | None = None
) -> list[Cell]:
    of_control = [method for method in methods if method in CHECKED]
    return [
        Cell(fit, fit.milestones[-1], part, mask, method, gamma=gamma)
        for fit in fits
        for part, chosen in (("train", methods), ("control", of_control))
        for mask in scale.table_masks
        for method in chosen
    ]


def table_of(results: Results, cells: Sequence[Cell], paper: Mapping[str, Sequence[float]]) -> str:
    rates = against_paper(results, cells, paper, APPROXIMATE)
    order = order_holds(results, cells, APPROXIMATE)
    return f"Approximate recovery in percent, with 95% intervals:\n\n{rates}\n{order}"
