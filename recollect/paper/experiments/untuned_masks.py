"""Refined under six masks that no setting of any method was chosen on."""

from __future__ import annotations

from dataclasses import replace

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, last_cells
from recollect.paper.new_masks import NEW_MASKS
from recollect.paper.render.tables import both_rates_by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store

NETWORKS = (
    ("fc10", "lrelu", "adam"), ("fc10", "prelu", "adam"), ("unet", "lrelu", "muon"), ("unet", "softplus", "muon"),
)  # fmt: skip


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect(*network) for network in NETWORKS]


def cells(scale: Scale) -> list[Cell]:
    under_new_masks = replace(scale, masks=tuple(NEW_MASKS))
    return [cell for fit in fits(scale) for cell in last_cells(under_new_masks, fit, WITH_NETWORK)]


def table(scale: Scale, store: Store) -> str:
    return both_rates_by_mask(store, cells(scale), WITH_NETWORK)


EXPERIMENT = Experiment(
    name="untuned-masks",
    summary="recovery under six masks that no method was tuned on, at the last train loss",
    location=BEYOND,
    cells=cells,
    table=table,
    order=25,
)
