"""FC-20 at perfect fit without noise, which the paper shows with noise alone."""

from __future__ import annotations

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, last_cells, with_references
from recollect.paper.render.tables import both_rates_by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect("fc20", activation, "adam") for activation in ("lrelu", "prelu")]


def cells(scale: Scale) -> list[Cell]:
    return [cell for fit in fits(scale) for cell in last_cells(scale, fit, with_references(fit, WITH_NETWORK))]


def table(scale: Scale, store: Store) -> str:
    return both_rates_by_mask(store, cells(scale), WITH_NETWORK)


EXPERIMENT = Experiment(
    name="deep",
    summary="recovery from FC-20 at the last train loss, without noise, six masks",
    location=BEYOND,
    cells=cells,
    table=table,
    order=22,
)
