"""What the two tables of moderate overfitting share: three masks, each rate beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiments.perfect_fit import REPEATED, WITH_NETWORK, with_other_answers
from recollect.paper.render.tables import against_paper, compare_with_iterate
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import APPROXIMATE

Rates = Mapping[str, Sequence[float]]
CHECKED = ("blind", "known", "refined")  # on unseen images too


def cells_of(
    scale: Scale, fits: Iterable[Fit], methods: Sequence[str] = WITH_NETWORK, gamma: float | None = None
) -> list[Cell]:
    """List the cells of networks on training and unseen images, then those of their further trainings."""
    fits = list(fits)
    further = [other for fit in fits for other in scale.repeats(fit)]
    cells = []
    for trainings, part, chosen in ((fits, "train", methods), (fits, "control", CHECKED), (further, "train", REPEATED)):
        own = [method for method in methods if method in chosen]
        for fit, mask, method in product(trainings, scale.table_masks, own):
            cells.append(Cell(fit, fit.milestones[-1], part, mask, method, gamma=gamma))
    return cells


def table_beside_paper(cells: Callable[[Scale], list[Cell]], paper: Rates) -> Callable[[Scale, Store], str]:
    """Return what writes one of the two tables; `paper` has the paper's rates in percent on its three masks."""

    def table(scale: Scale, store: Store) -> str:
        rates = against_paper(store, with_other_answers(cells(scale)), paper, APPROXIMATE)
        comparison = compare_with_iterate(store, cells(scale), APPROXIMATE)
        return f"Approximate recovery in percent, with 95% intervals:\n\n{rates}\n{comparison}"

    return table
