"""The cells that `accurate`, `approximate`, `psnr`, `thresholds` and `control` share: networks fitted perfectly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.render.panels import Reading, against_loss
from recollect.paper.render.tables import network_name
from recollect.paper.scales import Scale
from recollect.paper.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recollect.paper.render.draw import Axis

METHODS = ("iterate", "blind", "known")
BEYOND = ("refined", "known-400")  # not the paper's
EVERY = (*METHODS, *BEYOND)  # that sees a network
NETWORKS = (("fc10", "lrelu"), ("fc10", "prelu"), ("unet", "lrelu"), ("unet", "prelu"), ("unet", "softplus"))
# The paper does not name its optimizer, and it changes what is memorized: each kind of network is shown for both.
USUAL = {"fc10": "adam", "fc20": "adam", "unet": "muon"}
OTHER = {"fc10": "muon", "fc20": "muon", "unet": "adam"}


def fits(scale: Scale, kinds: Iterable[str] = ("fc10", "unet")) -> list[Fit]:
    """The paper's networks, first with the optimizer that suits them, then with the other."""
    chosen = [(kind, activation) for kind, activation in NETWORKS if kind in kinds]
    both = [(kind, activation) for kind, activation in chosen if activation in scale.by_both[kind]]
    usual = [scale.perfect(kind, activation, USUAL[kind]) for kind, activation in chosen]
    return usual + [scale.perfect(kind, activation, OTHER[kind]) for kind, activation in both]


def cells(scale: Scale) -> list[Cell]:
    """Every network at every train loss, under every mask, by every method."""
    return [
        Cell(fit, loss, "train", mask, method)
        for fit in fits(scale)
        for loss in reversed(fit.milestones)
        for mask in scale.masks
        for method in methods(fit, loss)
    ]


def methods(fit: Fit, loss: float) -> tuple[str, ...]:
    """The generic method only once, since it is the same at every loss, and where there is a prior for the images."""
    generic = fit.images.prior is not None and loss == fit.milestones[-1]
    return (*EVERY, GENERIC) if generic else EVERY


def figures(scale: Scale, results: Results, name: str, read: Reading, y: Axis) -> dict[str, Figure]:
    """One figure an optimizer: a row a network, a column a mask, lines over the train loss."""
    from recollect.paper.render.draw import LOSS, grid_figure

    drawn = {}
    for optimizer in ("adam", "muon"):
        rows = {}
        for fit in (fit for fit in fits(scale) if fit.optimizer == optimizer):
            own = [c for c in cells(scale) if c.fit == fit and c.method not in BEYOND]
            rows[network_name(fit)] = [
                against_loss(results, [c for c in own if c.mask == mask], read) for mask in scale.masks
            ]
        x = replace(LOSS, label=f"{LOSS.label} of networks trained by {optimizer.capitalize()}")
        drawn[f"{name}-{optimizer}"] = grid_figure(rows, scale.masks, x, y)
    return drawn
