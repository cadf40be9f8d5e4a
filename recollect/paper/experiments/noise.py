"""Erased pixels and noise on the others: FC-10 and FC-20, mask 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import EVERY
from recollect.paper.render.panels import against_loss, mean_psnr, rate_below
from recollect.paper.render.tables import markdown, network_name, order_holds, percent
from recollect.paper.scales import Scale
from recollect.paper.store import Results
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = (("fc10", "adam"), ("fc20", "adam"), ("fc10", "muon"))
NOISE = 0.02


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect(kind, "lrelu", optimizer) for kind, optimizer in NETWORKS]


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, loss, "train", scale.masks[0], method, NOISE)
        for fit in fits(scale)
        for loss in reversed(fit.milestones)
        for method in EVERY
    ]


def figures(scale: Scale, results: Results) -> dict[str, Figure]:
    """One figure a measure: a column a network."""
    from recollect.paper.render.draw import DECIBEL, LOSS, PERCENT, grid_figure

    readings = {
        "accurate": (rate_below(ACCURATE), PERCENT),
        "approximate": (rate_below(APPROXIMATE), PERCENT),
        "psnr": (mean_psnr, DECIBEL),
    }
    columns = [f"{network_name(fit)}, {fit.optimizer.title()}" for fit in fits(scale)]
    return {
        f"noise-{name}": grid_figure(
            {"": [against_loss(results, [c for c in cells(scale) if c.fit == fit], read) for fit in fits(scale)]},
            columns, LOSS, y,
        )
        for name, (read, y) in readings.items()
    }  # fmt: skip


def table(scale: Scale, results: Results) -> str:
    rows = []
    for fit in fits(scale):
        last = [c for c in cells(scale) if c.fit == fit and c.loss == fit.milestones[-1]]
        for cell in last:
            if record := results.best_of(cell):
                score = record.score
                rates = percent(score.accurate), percent(score.approximate, interval=True), f"{score.mean_psnr:.1f}"
                rows.append([network_name(fit), fit.optimizer, cell.method, *rates])
    titles = ["network", "optimizer", "method", "accurate, %", "approximate, %", "PSNR, dB"]
    head = f"Noise of {NOISE} on mask {scale.masks[0]}, at the last train loss:\n\n{markdown(titles, rows)}"
    order = {"Accurately": ACCURATE, "Approximately": APPROXIMATE}
    return head + "".join(f"\n{word}: {order_holds(results, cells(scale), t)}" for word, t in order.items())


EXPERIMENT = Experiment(
    id="noise",
    shows="recovery with noise of 0.02 on top of mask 1, FC-10 and FC-20 LReLU",
    where="Figure 10",
    cells=cells,
    figures=figures,
    table=table,
)
