"""What the two tables of moderate overfitting share: three masks, each rate beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import REPEATED, WITH_NETWORK
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
    on_control = [method for method in methods if method in CHECKED]
    repeated = [method for method in methods if method in REPEATED]
    again = [other for fit in fits for other in scale.repeats(fit)]
    return [
        Cell(fit, fit.milestones[-1], part, mask, method, gamma=gamma)
        for trainings, part, part_methods in (
            (fits, "train", methods),
            (fits, "control", on_control),
            (again, "train", repeated),
        )
        for fit in trainings
        for mask in scale.table_masks
        for method in part_methods
    ]


def moderate_experiment(
    *, name: str, summary: str, location: str, cells: Callable[[Scale], list[Cell]], paper: Rates, order: int
) -> Experiment:
    """Make one of the two tables; `paper` has the paper's rates in percent on its three masks."""

    def table(scale: Scale, store: Store) -> str:
        rates = against_paper(store, cells(scale), paper, APPROXIMATE)
        comparison = compare_with_iterate(store, cells(scale), APPROXIMATE)
        return f"Approximate recovery in percent, with 95% intervals:\n\n{rates}\n{comparison}"

    return Experiment(name=name, summary=summary, location=location, cells=cells, table=table, order=order)
