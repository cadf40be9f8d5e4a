"""Average PSNR of all recoveries against the train loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import perfect_fit
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, cells
from recollect.paper.render.panels import mean_psnr
from recollect.paper.render.tables import by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    from recollect.paper.render.draw import DECIBEL

    return perfect_fit.figures(scale, store, "psnr", mean_psnr, DECIBEL, "Mean PSNR")


def table(scale: Scale, store: Store) -> str:
    values = by_mask(store, cells(scale), WITH_NETWORK, None)
    return f"Average PSNR in dB, {' / '.join(WITH_NETWORK)}:\n\n{values}"


EXPERIMENT = Experiment(
    name="psnr",
    summary="average PSNR of all recoveries against the train loss, six masks",
    location="Figure 8",
    cells=cells,
    figures=figures,
    table=table,
    order=4,
)
