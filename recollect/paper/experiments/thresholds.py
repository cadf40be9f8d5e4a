"""Recovery rate as a function of the threshold: U-Nets, the last mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import fits, methods, repeated_cells
from recollect.paper.render.panels import Panel, against_threshold
from recollect.paper.render.tables import ACTIVATION_NAMES
from recollect.paper.scales import Scale
from recollect.paper.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(scale: Scale) -> list[Cell]:
    networks = fits(scale, ("unet",))
    first = [
        Cell(fit, fit.milestones[-1], "train", scale.masks[-1], method)
        for fit in networks
        for method in methods(fit, fit.milestones[-1])
    ]
    return first + [cell for cell in repeated_cells(scale, networks) if cell.mask == scale.masks[-1]]


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw a panel for each network that has records."""
    from recollect.paper.render.draw import PERCENT, Axis, grid_figure

    panels: dict[str, Panel] = {}
    for fit in fits(scale, ("unet",)):
        panel = against_threshold(store, [cell for cell in cells(scale) if cell.fit.first == fit])
        if panel.lines:
            panels[f"{ACTIVATION_NAMES[fit.activation]}, {fit.optimizer.title()}"] = panel
    if not panels:
        return {}
    x = Axis("MSE below which an image counts as recovered", (1.3e-3, 8e-8), log=True)
    title = f"Recovery below each threshold, {scale.masks[-1]}"
    return {"thresholds": grid_figure({"U-Net": list(panels.values())}, list(panels), x, PERCENT, title)}


EXPERIMENT = Experiment(
    name="thresholds",
    summary="recovery rate against the MSE threshold from 1e-3 to 1e-7, U-Net, the last mask",
    location="Figure 9",
    cells=cells,
    figures=figures,
    order=5,
)
