"""The same as `accurate`, as the average PSNR of all recoveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import perfect_fit
from recollect.paper.experiments.perfect_fit import EVERY, cells
from recollect.paper.render.panels import mean_psnr
from recollect.paper.render.tables import by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(scale: Scale, results: Results) -> dict[str, Figure]:
    from recollect.paper.render.draw import DECIBEL

    return perfect_fit.figures(scale, results, "psnr", mean_psnr, DECIBEL)


def table(scale: Scale, results: Results) -> str:
    return f"Average PSNR in dB, {' / '.join(EVERY)}:\n\n{by_mask(results, cells(scale), EVERY, None)}"


EXPERIMENT = Experiment(
    id="psnr",
    shows="average PSNR of all recoveries against the train loss, six masks",
    where="Figure 8",
    cells=cells,
    figures=figures,
    table=table,
)
