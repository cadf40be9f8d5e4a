"""What `accurate`, `approximate`, `psnr`, `thresholds` and `control` share: cells of perfectly fitted networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from recollect.methods import DDNM
from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.render.panels import Panel, Statistic, against_loss
from recollect.paper.render.tables import ACTIVATION_NAMES, NETWORK_NAMES, network_name
from recollect.paper.scales import MODERATE, Scale
from recollect.paper.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recollect.paper.render.draw import Axis

METHODS = ("iterate", "blind", "known")
OURS = ("refined", "known-400")  # not in the paper
WITH_NETWORK = (*METHODS, *OURS, "zero-rule")  # methods that see a network
REPEATED = ("iterate", "blind", "known", "refined", "zero-rule")  # on further trainings, at the last loss
NETWORKS = (("fc10", "lrelu"), ("fc10", "prelu"), ("unet", "lrelu"), ("unet", "prelu"), ("unet", "softplus"))
# The optimizer changes what is memorized, and the paper does not name its own: networks are trained with both.
USUAL = {"fc10": "adam", "fc20": "adam", "unet": "muon"}
OTHER = {"fc10": "muon", "fc20": "muon", "unet": "adam"}


def fits(scale: Scale, kinds: Iterable[str] = ("fc10", "unet")) -> list[Fit]:
    """List the paper's networks, first with their usual optimizer, then with the other."""
    chosen = [(kind, activation) for kind, activation in NETWORKS if kind in kinds]
    with_other = [(kind, activation) for kind, activation in chosen if activation in scale.by_both[kind]]
    usual = [scale.perfect(kind, activation, USUAL[kind]) for kind, activation in chosen]
    return usual + [scale.perfect(kind, activation, OTHER[kind]) for kind, activation in with_other]


def is_usual(fit: Fit) -> bool:
    """Return whether a network is trained with the optimizer that its kind and number of images usually have."""
    return fit.milestones == MODERATE or fit.optimizer == USUAL.get(fit.kind)


def cells(scale: Scale) -> list[Cell]:
    """List every network at every train loss, under every mask, with every method; then its further trainings."""
    first = [
        Cell(fit, loss, "train", mask, method)
        for fit in fits(scale)
        for loss in reversed(fit.milestones)
        for mask in scale.masks
        for method in methods(fit, loss)
    ]
    return first + repeated_cells(scale, fits(scale))


def repeated_cells(scale: Scale, fits: Iterable[Fit]) -> list[Cell]:
    """List the cells of further trainings: at the last loss alone, where they show how much trainings differ."""
    return [cell for fit in fits for again in scale.repeats(fit) for cell in last_cells(scale, again, REPEATED)]


def last_cells(scale: Scale, fit: Fit, methods: Sequence[str]) -> list[Cell]:
    """List the cells of a training at its last loss, under every mask."""
    return [Cell(fit, fit.milestones[-1], "train", mask, method) for mask in scale.masks for method in methods]


def methods(fit: Fit, loss: float) -> tuple[str, ...]:
    """List the methods of a cell; the generic ones only at the last loss, because they are the same at every loss."""
    return with_references(fit, WITH_NETWORK) if loss == fit.milestones[-1] else WITH_NETWORK


def with_references(fit: Fit, methods: Sequence[str]) -> tuple[str, ...]:
    """Add the methods that a recovery has to be compared with: the zero rule and generic restoration."""
    return tuple(dict.fromkeys([*methods, "zero-rule", *generic_methods(fit)]))


def with_other_answers(cells: Iterable[Cell]) -> list[Cell]:
    """Add blind with the kept values of y pasted, and known without: the paper pastes for known alone."""
    others = {"blind": True, "known": False}
    chosen: list[Cell] = []
    for cell in cells:
        chosen.append(cell)
        if cell.method in others:
            chosen.append(replace(cell, paste=others[cell.method]))
    return chosen


def generic_methods(fit: Fit) -> tuple[str, ...]:
    """List the methods that see no network; DDNM needs a prior for the images."""
    return tuple(method for method in GENERIC if fit.images.prior is not None or method != DDNM.name)


def figures(scale: Scale, store: Store, name: str, statistic: Statistic, y: Axis, title: str) -> dict[str, Figure]:
    """Draw a figure for each optimizer: a row for each network, a column for each mask, lines over the train loss."""
    from recollect.paper.render.draw import LOSS, grid_figure

    drawn = _page_figures(scale, store, name, statistic, y, title)
    for optimizer in ("adam", "muon"):
        rows = {}
        for fit in fits(scale):
            if fit.optimizer == optimizer:
                rows[network_name(fit)] = _panels(scale, store, fit, statistic)
        x = replace(LOSS, label=f"{LOSS.label} of networks trained with {optimizer.capitalize()}")
        drawn[f"{name}-{optimizer}"] = grid_figure(rows, scale.masks, x, y, title)
    return drawn


def _page_figures(
    scale: Scale, store: Store, name: str, statistic: Statistic, y: Axis, title: str
) -> dict[str, Figure]:
    """Draw a small figure for each kind of network: a row for each mask of the tables, a column for each network."""
    from recollect.paper.render.draw import LOSS, PAGE, grid_figure

    drawn = {}
    for kind in ("fc10", "unet"):
        networks = [fit for fit in fits(scale, (kind,)) if fit.optimizer == USUAL[kind]]
        rows = _rows_of_masks(scale, store, networks, statistic)
        if rows:
            names = [ACTIVATION_NAMES[fit.activation] for fit in networks]
            own = f"{title}, {NETWORK_NAMES[kind]}"
            drawn[f"{name}-{kind}"] = grid_figure(rows, names, LOSS, y, own, PAGE)
    return drawn


def _rows_of_masks(scale: Scale, store: Store, networks: Iterable[Fit], statistic: Statistic) -> dict[str, list[Panel]]:
    """Make a row for each mask of the tables, a panel for each network; nothing if no network has a line."""
    columns = [dict(zip(scale.masks, _panels(scale, store, fit, statistic), strict=True)) for fit in networks]
    rows = {}
    for mask in scale.masks:
        if mask in scale.table_masks:
            rows[mask] = [column[mask] for column in columns]
    if not any(panel.lines for panel in chain.from_iterable(rows.values())):
        return {}
    return rows


def _panels(scale: Scale, store: Store, fit: Fit, statistic: Statistic) -> list[Panel]:
    """Make a panel for each mask, with the methods of the paper and the references."""
    by_mask: dict[str, list[Cell]] = {mask: [] for mask in scale.masks}
    for cell in cells(scale):
        if cell.fit.first == fit and cell.method not in OURS:
            by_mask[cell.mask].append(cell)
    return [against_loss(store, own, statistic) for own in by_mask.values()]
