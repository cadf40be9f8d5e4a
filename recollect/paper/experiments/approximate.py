"""The same as `accurate`, with the looser threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import perfect_fit
from recollect.paper.experiments.perfect_fit import EVERY, cells
from recollect.paper.render.panels import rate_below
from recollect.paper.render.tables import by_mask, order_holds
from recollect.paper.scales import Scale
from recollect.paper.store import Results
from recollect.scoring import APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(scale: Scale, results: Results) -> dict[str, Figure]:
    from recollect.paper.render.draw import PERCENT

    return perfect_fit.figures(scale, results, "approximate", rate_below(APPROXIMATE), PERCENT)


def table(scale: Scale, results: Results) -> str:
    rates = by_mask(results, cells(scale), EVERY, APPROXIMATE)
    order = order_holds(results, cells(scale), APPROXIMATE)
    return f"Approximate recovery in percent, {' / '.join(EVERY)}:\n\n{rates}\n{order}"


EXPERIMENT = Experiment(
    id="approximate",
    shows="approximate recovery rate (MSE < 5e-4) against the train loss, six masks",
    where="Figure 7",
    cells=cells,
    figures=figures,
    table=table,
)
