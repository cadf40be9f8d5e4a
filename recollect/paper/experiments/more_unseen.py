"""Ten times as many unseen images as the U-Nets were trained on: fewer false alarms go unnoticed."""

from __future__ import annotations

from recollect.paper.cells import MORE_CONTROL, Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import REPEATED, with_references
from recollect.paper.render.tables import against_paper
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import ACCURATE, APPROXIMATE


def fits(scale: Scale) -> list[Fit]:
    return [scale.perfect("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")]


def cells(scale: Scale) -> list[Cell]:
    """List the cells; a set without a larger part of unseen images has none."""
    return [
        Cell(fit, fit.milestones[-1], MORE_CONTROL, mask, method)
        for fit in fits(scale)
        if MORE_CONTROL in fit.images.parts
        for mask in scale.masks
        for method in with_references(fit, REPEATED)
    ]


def table(scale: Scale, store: Store) -> str:
    text = ""
    for name, threshold in (("Accurate", ACCURATE), ("Approximate", APPROXIMATE)):
        text += f"{name} recovery of unseen images in percent, with 95% intervals:\n\n"
        text += against_paper(store, cells(scale), {}, threshold) + "\n"
    return text


EXPERIMENT = Experiment(
    name="more-unseen",
    summary="recovery of 500 unseen SVHN images, train loss 1e-8, six masks",
    location=BEYOND,
    cells=cells,
    table=table,
    order=24,
)
