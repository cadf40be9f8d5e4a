"""Erased pixels and noise on the others: FC-10 and FC-20, one mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import METHODS, OURS, generic_methods
from recollect.paper.render.panels import against_loss, mean_psnr, rate_below
from recollect.paper.render.tables import compare_with_iterate, markdown, network_name, percent
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = (("fc10", "adam"), ("fc20", "adam"), ("fc10", "muon"))
NOISE = 0.02
TITLES = {"accurate": "Accurate recovery", "approximate": "Approximate recovery", "psnr": "Mean PSNR"}


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect(kind, "lrelu", optimizer) for kind, optimizer in NETWORKS]


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, loss, "train", scale.masks[0], method, NOISE)
        for fit in fits(scale)
        for loss in reversed(fit.milestones)
        for method in _methods(fit, loss)
    ]


def _methods(fit: Fit, loss: float) -> tuple[str, ...]:
    """List the methods: the zero rule is none of them, for with noise no pixel is zero."""
    generic = generic_methods(fit) if loss == fit.milestones[-1] else ()
    return (*METHODS, *OURS, *generic)


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw a figure for each statistic, with a column for each network."""
    from recollect.paper.render.draw import DECIBEL, LOSS, PERCENT, grid_figure

    statistics = {
        "accurate": (rate_below(ACCURATE), PERCENT),
        "approximate": (rate_below(APPROXIMATE), PERCENT),
        "psnr": (mean_psnr, DECIBEL),
    }
    columns = [f"{network_name(fit)}, {fit.optimizer.title()}" for fit in fits(scale)]
    drawn = {}
    for name, (statistic, y) in statistics.items():
        panels = [against_loss(store, _cells_of(scale, fit), statistic) for fit in fits(scale)]
        title = f"{TITLES[name]} with noise of {NOISE}, {scale.masks[0]}"
        drawn[f"noise-{name}"] = grid_figure({"": panels}, columns, LOSS, y, title)
    return drawn


def _cells_of(scale: Scale, fit: Fit) -> list[Cell]:
    return [cell for cell in cells(scale) if cell.fit == fit]


def table(scale: Scale, store: Store) -> str:
    rows: dict[tuple[str, ...], None] = {}  # all networks share the generic methods' rows
    for cell in cells(scale):
        record = store.shown(cell)
        if record and cell.is_at_last_loss:
            score = record.score
            head = (network_name(cell.fit), cell.fit.optimizer) if cell.sees_network else ("none", "")
            rates = percent(score.accurate), percent(score.approximate, interval=True), f"{score.mean_psnr:.1f}"
            rows[*head, cell.method, *rates] = None
    titles = ["network", "optimizer", "method", "accurate, %", "approximate, %", "PSNR, dB"]
    text = f"Noise of {NOISE} on mask {scale.masks[0]}, at the last train loss:\n\n{markdown(titles, rows)}"
    for name, threshold in (("Accurately", ACCURATE), ("Approximately", APPROXIMATE)):
        text += f"\n{name}: {compare_with_iterate(store, cells(scale), threshold)}"
    return text


EXPERIMENT = Experiment(
    name="noise",
    summary="recovery with noise of 0.02 under the mask block, FC-10 and FC-20 LReLU",
    location="Figure 10",
    cells=cells,
    figures=figures,
    table=table,
    order=9,
)
