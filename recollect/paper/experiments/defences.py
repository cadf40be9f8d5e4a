"""Not in the paper: what protects training images, and what that costs on unseen ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.paper.cells import SEED, Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import with_references
from recollect.paper.render.panels import Point, share_of_all
from recollect.paper.render.tables import markdown, pooled_count
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recollect.paper.render.draw import Axis

METHOD = "refined"  # usually the strongest attack that does not know the mask
EARLY = (1e-2, 1e-3, 1e-4, 1e-5, 1e-8)  # train losses of the undefended network; the last stands for no defence
UNDEFENDED = "early stopping"  # the defence whose lowest train loss stands for none
STRENGTHS: dict[str, tuple[str, tuple[float, ...]]] = {  # label, settings of the recipe or the network
    "weight_decay": ("weight decay", (0.1, 1.0, 10.0)),
    "input_noise": ("noise on the input", (0.01, 0.03, 0.1)),
    "shift": ("shifts and mirror images", (1, 4)),
    "dropout": ("dropout", (0.1, 0.3)),
}
# No epsilon is claimed of DP-SGD here: which weights are the best is told by the train loss, without noise.
PRIVATE, CLIP = (0.01, 0.1, 1.0), 0.01  # noise multipliers, and the norm that gradients are clipped to
MUON_DECAY = (0.0, 0.15, 1.0)  # the second is the recipe's
TICKS = tuple(digit * 10.0**power for power in range(-4, 1) for digit in (1, 2, 4))


@dataclass(frozen=True)
class Measured:
    """One attacked network, over its trainings: means, and the lowest and highest share."""

    train_loss: float
    unseen_loss: float
    accurate: float
    approximate: tuple[float, float, float]

    @property
    def point(self) -> Point:
        return Point(self.unseen_loss, *self.approximate)


def undefended(scale: Scale) -> Fit:
    return scale.growth(scale.middle)


def defended(scale: Scale) -> dict[str, list[Fit]]:
    """List the trainings of each defence, weakest first."""
    fits = {
        label: [_defended(scale, (setting, strength)) for strength in strengths]
        for setting, (label, strengths) in STRENGTHS.items()
    }
    fits["weight decay, Muon"] = [_defended(scale, ("weight_decay", decay), optimizer="muon") for decay in MUON_DECAY]
    fits["DP-SGD"] = [_defended(scale, ("noise_multiplier", noise), ("clip", CLIP)) for noise in PRIVATE]
    return fits


def _defended(scale: Scale, *changes: tuple[str, float], optimizer: str = "adam") -> Fit:
    """Describe a training in half the usual time: most defended networks never reach the last loss."""
    fit = scale.growth(scale.middle, *changes, optimizer=optimizer)
    steps = fit.limit_steps and fit.limit_steps // 2
    return replace(fit, goal_seconds=fit.goal_seconds / 2, limit_seconds=fit.limit_seconds / 2, limit_steps=steps)


def lines(scale: Scale) -> dict[str, list[Cell]]:
    """List the attacked networks of each defence, each as one of its cells."""
    early = [_cell(scale, undefended(scale), loss) for loss in EARLY]
    others = {label: [_cell(scale, fit, fit.milestones[-1]) for fit in fits] for label, fits in defended(scale).items()}
    return {UNDEFENDED: early, **others}


def _cell(scale: Scale, fit: Fit, loss: float) -> Cell:
    return Cell(fit, loss, "train", scale.table_masks[0], METHOD)


def _again(scale: Scale, network: Cell) -> list[Cell]:
    """List an attacked network in all its trainings."""
    number = scale.trainings.get("defences", 1)
    return [replace(network, fit=replace(network.fit, seed=SEED + i)) for i in range(number)]


def cells(scale: Scale) -> list[Cell]:
    networks = [again for own in lines(scale).values() for cell in own for again in _again(scale, cell)]
    attacked = [cell for one in networks for part in ("train", "control") for cell in _cells_of(scale, one, part)]
    return attacked + _reference_cells(scale)


def _cells_of(scale: Scale, network: Cell, part: str) -> list[Cell]:
    return [replace(network, set=part, mask=mask) for mask in scale.table_masks]


def _reference_cells(scale: Scale) -> list[Cell]:
    """List what else recovers the images: the zero rule from the undefended network, and generic restoration."""
    base = undefended(scale)
    references = with_references(base, ())
    return [Cell(base, base.milestones[-1], "train", mask, name) for name in references for mask in scale.table_masks]


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw the recovered share of the training images against the loss on unseen images, a panel for each defence."""
    from recollect.paper.render.draw import PERCENT, Series, Style, method_styles, series_figure

    drawn, references = _points(scale, store), _references(scale, store)
    if not drawn:
        return {}
    x = _loss_axis([point.x for points in drawn.values() for point in points])
    beside = {name: [Point(end, share, share, share) for end in x.limits] for name, share in references.items()}
    if measured := _measured(scale, store, _weakest_first(scale)[UNDEFENDED][0]):
        beside["no defence"] = [measured.point]
    methods = method_styles()
    label = f"{METHOD};\nlarger dot:\nstronger defence"
    styles = {
        METHOD: replace(methods[METHOD], marker="o", dashes="-", label=label, is_path=True),
        "no defence": Style("black", "D", "none", "no defence"),
        **{name: replace(methods[name], marker="", label=name) for name in references},
    }
    panels = [Series(_panel_title(scale, label), x, {METHOD: points, **beside}) for label, points in drawn.items()]
    title = f"Training images recovered by {METHOD}"
    return {"defences": series_figure(panels, styles, PERCENT, title, columns=2, height=1.45)}


def _loss_axis(losses: Sequence[float]) -> Axis:
    from recollect.paper.render.draw import Axis

    lowest, highest = min(losses) / 1.4, max(losses) * 1.3
    ticks = tuple(tick for tick in TICKS if lowest < tick < highest)
    return Axis("loss on unseen images", (lowest, highest), log=True, ticks=ticks)


def _panel_title(scale: Scale, label: str) -> str:
    """Name a defence above its strengths, weakest first."""
    strengths = [_strength(network).replace("e-0", "e-") for network in _weakest_first(scale)[label]]
    return f"{label}\n{', '.join(strengths) if len(strengths) <= 3 else f'{strengths[0]} to {strengths[-1]}'}"


def _weakest_first(scale: Scale) -> dict[str, list[Cell]]:
    """List the networks of each defence; of early stopping the first has no defence."""
    return {label: own[::-1] if label == UNDEFENDED else own for label, own in lines(scale).items()}


def _points(scale: Scale, store: Store) -> dict[str, list[Point]]:
    """Make the line of each defence that has a record, from its weakest strength on."""
    drawn: dict[str, list[Point]] = {}
    for label, networks in _weakest_first(scale).items():
        points = [measured.point for network in networks if (measured := _measured(scale, store, network))]
        if points:
            drawn[label] = points
    return drawn


def _references(scale: Scale, store: Store) -> dict[str, float]:
    """Measure the share that each reference recovers, if it is recorded under every mask."""
    by_name: dict[str, list[Cell]] = {}
    for cell in _reference_cells(scale):
        by_name.setdefault(cell.method, []).append(cell)
    shares = {name: share_of_all(store, cells, APPROXIMATE) for name, cells in by_name.items()}
    return {name: share for name, share in shares.items() if share is not None}


def _measured(scale: Scale, store: Store, network: Cell) -> Measured | None:
    """Average one attacked network over those of its trainings that are recorded; None without any."""
    trainings = [one for again in _again(scale, network) if (one := _of_training(scale, store, again))]
    if not trainings:
        return None
    train_loss, unseen_loss, accurate, mean = (sum(column) / len(trainings) for column in zip(*trainings, strict=True))
    shares = [approximate for *_, approximate in trainings]
    return Measured(train_loss, unseen_loss, accurate, (mean, min(shares), max(shares)))


def _of_training(scale: Scale, store: Store, network: Cell) -> tuple[float, float, float, float] | None:
    """Return both losses of a training, and the shares recovered accurately and approximately, in percent."""
    own, unseen = _cells_of(scale, network, "train"), store.shown(_cells_of(scale, network, "control")[0])
    accurate, approximate = (share_of_all(store, own, threshold) for threshold in (ACCURATE, APPROXIMATE))
    if unseen is None or accurate is None or approximate is None:
        return None
    return float(unseen.provenance["train_loss"]), float(unseen.provenance["unseen_loss"]), accurate, approximate


def table(scale: Scale, store: Store) -> str:
    networks = [(label, network) for label, own in lines(scale).items() for network in own]
    rows = [
        _row(scale, store, label, network, measured)
        for label, network in networks
        if (measured := _measured(scale, store, network))
    ]
    rows += [[name, "", "", "", "", f"{share:.0f}", ""] for name, share in _references(scale, store).items()]
    titles = [
        "defence", "strength", "train loss", "loss on unseen images", "accurate, %", "approximate, %", "unseen images",
    ]  # fmt: skip
    return (
        f"Training images recovered by {METHOD}, mean over {', '.join(scale.table_masks)} and over "
        f"{scale.trainings.get('defences', 1)} trainings (lowest to highest), and unseen images recovered "
        f"approximately. Below: the references.\n\n{markdown(titles, rows)}"
    )


def _row(scale: Scale, store: Store, label: str, network: Cell, measured: Measured) -> list[str]:
    mean, low, high = measured.approximate
    unseen = [cell for again in _again(scale, network) for cell in _cells_of(scale, again, "control")]
    losses = f"{measured.train_loss:.1e}", f"{measured.unseen_loss:.1e}"
    shares = f"{measured.accurate:.0f}", f"{mean:.0f} ({low:.0f} to {high:.0f})"
    return [label, _strength(network), *losses, *shares, pooled_count(store, unseen, APPROXIMATE)]


def _strength(network: Cell) -> str:
    return f"{network.fit.changes[0][1]:g}" if network.fit.changes else network.loss_name


EXPERIMENT = Experiment(
    name="defences",
    summary="recovered share against the loss on unseen images, by defence and its strength",
    location=BEYOND,
    cells=cells,
    figures=figures,
    table=table,
    order=31,
)
