"""Recovery under six masks, and from networks, that no setting of any method was chosen on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import WITH_NETWORK, last_cells, with_references
from recollect.paper.new_masks import NEW_MASKS
from recollect.paper.render.tables import both_rates_by_mask
from recollect.paper.scales import Scale
from recollect.paper.store import Store

NETWORKS = (
    ("fc10", "lrelu", "adam"), ("fc10", "prelu", "adam"), ("unet", "lrelu", "muon"), ("unet", "softplus", "muon"),
)  # fmt: skip


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect(*network) for network in NETWORKS]


def untuned_fits(scale: Scale) -> list[Fit]:
    """List the same networks in another width: neither they nor the masks were tuned on."""
    return [scale.untuned(*network) for network in NETWORKS]


def cells(scale: Scale) -> list[Cell]:
    return _cells_of(scale, [*untuned_fits(scale), *fits(scale)])


def _cells_of(scale: Scale, fits: Iterable[Fit]) -> list[Cell]:
    under_new_masks = replace(scale, masks=tuple(NEW_MASKS))
    return [cell for fit in fits for cell in last_cells(under_new_masks, fit, with_references(fit, WITH_NETWORK))]


def table(scale: Scale, store: Store) -> str:
    """Make the tables of new networks, then those of networks on which settings were chosen under other masks."""
    new = both_rates_by_mask(store, _cells_of(scale, untuned_fits(scale)), WITH_NETWORK)
    usual = both_rates_by_mask(store, _cells_of(scale, fits(scale)), WITH_NETWORK)
    return f"New networks under new masks.\n\n{new}The usual networks under new masks.\n\n{usual}"


EXPERIMENT = Experiment(
    name="untuned-masks",
    summary="recovery under six masks, and from networks, that no method was tuned on, at the last train loss",
    location=BEYOND,
    cells=cells,
    table=table,
    order=25,
)
