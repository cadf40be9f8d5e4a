"""Not in the paper: what protects training images, and what that costs on unseen ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.render.panels import Point, share_of_all
from recollect.paper.render.tables import markdown
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHOD = "refined"  # the strongest attack that does not know the mask
EARLY = (1e-2, 1e-3, 1e-4, 1e-5)  # train losses of the undefended network, early stopping
STRENGTHS: dict[str, tuple[str, tuple[float, ...]]] = {  # label, settings of the recipe or the network
    "weight_decay": ("weight decay", (0.1, 1.0, 10.0)),
    "input_noise": ("noise on the input", (0.01, 0.03, 0.1)),
    "shift": ("shifts and mirror images", (1, 4)),
    "dropout": ("dropout", (0.1, 0.3)),
}
# No epsilon is claimed of DP-SGD here: which weights are the best is told by the train loss, without noise.
PRIVATE, CLIP = (0.01, 0.1, 1.0), 0.01  # noise multipliers, and the norm that gradients are clipped to


def undefended(scale: Scale) -> Fit:
    return scale.growth(scale.growing[1])


def defended(scale: Scale) -> dict[str, list[Fit]]:
    """List the trainings of each defence, weakest first."""
    fits = {
        label: [_defended(scale, (setting, strength)) for strength in strengths]
        for setting, (label, strengths) in STRENGTHS.items()
    }
    return fits | {"DP-SGD": [_defended(scale, ("noise_multiplier", noise), ("clip", CLIP)) for noise in PRIVATE]}


def _defended(scale: Scale, *changes: tuple[str, float]) -> Fit:
    """Describe a training in half the usual time: most defended networks never reach the last loss."""
    fit = scale.growth(scale.growing[1], *changes)
    return replace(fit, limit_seconds=fit.limit_seconds / 2)


def lines(scale: Scale) -> dict[str, list[Cell]]:
    """List the attacked networks of each defence, each as one of its cells."""
    base = undefended(scale)
    last = [("none", [base]), *defended(scale).items()]
    attacked = {label: [_cell(scale, fit, fit.milestones[-1]) for fit in fits] for label, fits in last}
    return attacked | {"early stopping": [_cell(scale, base, loss) for loss in EARLY]}


def _cell(scale: Scale, fit: Fit, loss: float) -> Cell:
    return Cell(fit, loss, "train", scale.table_masks[0], METHOD)


def cells(scale: Scale) -> list[Cell]:
    networks = [cell for own in lines(scale).values() for cell in own]
    return [cell for network in networks for cell in (*_train_cells(scale, network), _unseen_cell(scale, network))]


def _train_cells(scale: Scale, network: Cell) -> list[Cell]:
    assert network.loss is not None
    return [Cell(network.fit, network.loss, "train", mask, METHOD) for mask in scale.table_masks]


def _unseen_cell(scale: Scale, network: Cell) -> Cell:
    """Return the cell on unseen images, whose record has the loss on them."""
    return Cell(network.fit, network.loss, "control", scale.table_masks[0], METHOD)


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw the recovered share of the training images against the loss on unseen images."""
    from recollect.paper.render.draw import PERCENT, Axis, Series, series_figure

    drawn: dict[str, list[Point]] = {}
    for label, networks in lines(scale).items():
        measured = [_measured(scale, store, network) for network in networks]
        points = [Point(one[0], one[2], one[2], one[2]) for one in measured if one]
        if points:
            drawn[label] = points
    losses = [point.x for points in drawn.values() for point in points] or [1e-3, 1e-1]
    x = Axis("loss on unseen images", (min(losses) / 1.5, max(losses) * 1.5), log=True)
    return {"defences": series_figure([Series("approximately recovered training images", x, drawn)], PERCENT)}


def _measured(scale: Scale, store: Store, network: Cell) -> tuple[float, float, float] | None:
    """Return the loss on unseen images, and the shares recovered accurately and approximately, in percent."""
    unseen, own = store.shown(_unseen_cell(scale, network)), _train_cells(scale, network)
    accurate, approximate = (share_of_all(store, own, threshold) for threshold in (ACCURATE, APPROXIMATE))
    if unseen is None or accurate is None or approximate is None:
        return None
    return float(unseen.provenance["unseen_loss"]), accurate, approximate


def table(scale: Scale, store: Store) -> str:
    rows = []
    for label, networks in lines(scale).items():
        for network in networks:
            if measured := _measured(scale, store, network):
                record = store.shown(network)
                assert record is not None
                strength = f"{network.fit.changes[0][1]:g}" if network.fit.changes else ""
                losses = f"{record.provenance['train_loss']:.1e}", f"{measured[0]:.1e}"
                rows.append([label, strength, *losses, f"{measured[1]:.0f}", f"{measured[2]:.0f}"])
    titles = ["defence", "strength", "train loss", "loss on unseen images", "accurate, %", "approximate, %"]
    return (
        f"Training images recovered by {METHOD}, mean over {', '.join(scale.table_masks)}:\n\n{markdown(titles, rows)}"
    )


EXPERIMENT = Experiment(
    name="defences",
    summary="recovered share against the loss on unseen images, by defence and its strength",
    location=BEYOND,
    cells=cells,
    figures=figures,
    table=table,
    order=31,
)
