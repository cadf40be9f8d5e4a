"""Approximate recovery against the train loss: `accurate` with the looser threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import perfect_fit
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, cells
from recollect.paper.render.panels import rate_below
from recollect.paper.render.tables import by_mask, compare_with_iterate
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    from recollect.paper.render.draw import PERCENT

    return perfect_fit.figures(scale, store, "approximate", rate_below(APPROXIMATE), PERCENT, "Approximate recovery")


def table(scale: Scale, store: Store) -> str:
    rates = by_mask(store, cells(scale), WITH_NETWORK, APPROXIMATE)
    comparison = compare_with_iterate(store, cells(scale), APPROXIMATE)
    return f"Approximate recovery in percent, {' / '.join(WITH_NETWORK)}:\n\n{rates}\n{comparison}"


EXPERIMENT = Experiment(
    name="approximate",
    summary="approximate recovery rate (MSE < 5e-4) against the train loss, six masks",
    location="Figure 7",
    cells=cells,
    figures=figures,
    table=table,
    order=3,
)
