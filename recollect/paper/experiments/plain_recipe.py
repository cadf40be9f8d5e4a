"""Not in the paper: networks of a recipe that nobody tuned, beside those of the suite's own recipe."""

from __future__ import annotations

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import REPEATED, last_cells, with_references
from recollect.paper.render.tables import both_rates_by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store

NETWORKS = (("fc10", "lrelu"), ("fc10", "prelu"), ("unet", "lrelu"), ("unet", "prelu"), ("unet", "softplus"))
LOWER_RATE = 1e-4  # of FC-10 too: at PyTorch's rate of 1e-3 its loss diverged at full size (results/training.md)


def fits(scale: Scale) -> list[Fit]:
    """List the networks: PyTorch's initialisation, Adam at a constant rate, in float32."""
    usual = [scale.plain(kind, activation) for kind, activation in NETWORKS]
    lower = [scale.plain(kind, activation, LOWER_RATE) for kind, activation in NETWORKS if kind == "fc10"]
    return usual + lower


def cells(scale: Scale) -> list[Cell]:
    return [cell for fit in fits(scale) for cell in last_cells(scale, fit, with_references(fit, REPEATED))]


def table(scale: Scale, store: Store) -> str:
    """Make a table for each threshold, at the loss that the plain recipe comes to."""
    return both_rates_by_mask(store, cells(scale), REPEATED)


EXPERIMENT = Experiment(
    name="plain-recipe",
    summary="recovery from networks trained with PyTorch's initialisation and Adam, nothing tuned",
    location=BEYOND,
    cells=cells,
    table=table,
    order=20,
)
