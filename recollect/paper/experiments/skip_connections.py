"""The other reading of the paper's U-Net: with skip connections, beside the U-Net without."""

from __future__ import annotations

from dataclasses import replace

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import REPEATED, last_cells, with_references
from recollect.paper.render.tables import both_rates_by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store

ACTIVATIONS = ("lrelu", "prelu", "softplus")


def fits(scale: Scale) -> list[Fit]:
    """List the U-Nets with skip connections, one for each activation."""
    return [replace(scale.perfect("unet", activation, "muon"), skip=True) for activation in ACTIVATIONS]


def cells(scale: Scale) -> list[Cell]:
    return [cell for fit in fits(scale) for cell in last_cells(scale, fit, with_references(fit, REPEATED))]


def table(scale: Scale, store: Store) -> str:
    """Make a table for each threshold, with the U-Nets without skip connections below."""
    without = [cell for fit in fits(scale) for cell in last_cells(scale, replace(fit, skip=False), REPEATED)]
    return both_rates_by_mask(store, [*cells(scale), *without], REPEATED)


EXPERIMENT = Experiment(
    name="skip-connections",
    summary="recovery from U-Nets with skip connections, six masks",
    location=BEYOND,
    cells=cells,
    table=table,
    order=21,
)
