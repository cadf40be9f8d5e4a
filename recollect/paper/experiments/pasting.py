"""Blind and known with and without pasting: the paper pastes the kept values of y for one of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments import accurate, moderate_fc, moderate_unet
from recollect.paper.experiments.perfect_fit import is_usual
from recollect.paper.render.panels import over_trainings, rate_below
from recollect.paper.render.tables import markdown, network_name, rates_of
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("blind", "known")
ANSWERS = {  # label: method, whether the kept values of y are pasted
    "blind": ("blind", False), "blind, pasted": ("blind", True),
    "known, not pasted": ("known", False), "known": ("known", True),
}  # fmt: skip
BELOW = rate_below(APPROXIMATE)
Network = tuple[Fit, float | None]  # a network and the gamma of the methods


def cells(scale: Scale) -> list[Cell]:
    """List the cells of other tables at the last loss: each record has the errors of both answers."""
    listed = [*accurate.cells(scale), *moderate_fc.cells(scale), *moderate_unet.cells(scale)]
    own = [cell for cell in listed if cell.method in METHODS and cell.set == "train" and cell.is_at_last_loss]
    return list(dict.fromkeys(own))


def answers(scale: Scale, store: Store) -> dict[Network, dict[str, dict[str, list[Record]]]]:
    """Group the records by network, mask and answer, all trainings together; only records that have both answers."""
    groups: dict[Network, dict[str, dict[str, list[Record]]]] = {}
    for cell in cells(scale):
        for label, (method, paste) in ANSWERS.items():
            record = store.shown(replace(cell, paste=paste)) if cell.method == method else None
            if record:
                of_network = groups.setdefault((cell.fit.first, cell.gamma), {})
                of_network.setdefault(cell.mask, {}).setdefault(label, []).append(record)
    return groups


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw a panel of bars for each of the paper's networks: the mean over the masks of each answer."""
    from recollect.paper.render.draw import PERCENT, bar_figure

    bars: dict[str, dict[str, float]] = {}
    for (fit, gamma), by_mask in answers(scale, store).items():
        if gamma is None and is_usual(fit) and all(len(own) == len(ANSWERS) for own in by_mask.values()):
            bars[f"{network_name(fit)}, {fit.images.count:,} images"] = _means(by_mask)
    title = "Approximate recovery with and without pasting, mean over the masks"
    return {"pasting": bar_figure(bars, PERCENT, title)} if bars else {}


def _means(by_mask: dict[str, dict[str, list[Record]]]) -> dict[str, float]:
    """Average the approximate rate of each answer over the masks."""
    rates = {label: [over_trainings(own[label], BELOW)[0] for own in by_mask.values()] for label in ANSWERS}
    return {label: sum(values) / len(values) for label, values in rates.items()}


def table(scale: Scale, store: Store) -> str:
    """Make a table for each threshold: a row for each network, a column for each mask, the four answers."""
    groups = answers(scale, store)
    if not groups:
        return ""
    text = "Pasting puts the kept values of y into the answer: by the estimated mask for `blind`, by the true one for "
    text += "`known`. The paper pastes for `known` alone.\n"
    for name, threshold in (("Accurate", ACCURATE), ("Approximate", APPROXIMATE)):
        masks = list(dict.fromkeys(cell.mask for cell in cells(scale)))
        rows = [
            [_name(network), network[0].optimizer, *_values(by_mask, masks, threshold)]
            for network, by_mask in groups.items()
        ]
        text += f"\n{name} recovery in percent, {' / '.join(ANSWERS)}:\n\n"
        text += markdown(["network", "optimizer", *masks], rows)
    return text


def _name(network: Network) -> str:
    fit, gamma = network
    name = f"{network_name(fit)}, {fit.images.count:,} images"
    return name if gamma is None else f"{name}, gamma {gamma:g}"


def _values(by_mask: dict[str, dict[str, list[Record]]], masks: list[str], threshold: float) -> Iterator[str]:
    for mask in masks:
        own = by_mask.get(mask, {})
        yield rates_of([own.get(label, []) for label in ANSWERS], threshold) if own else ""


EXPERIMENT = Experiment(
    name="pasting",
    summary="blind and known, each with and without the kept values of y in its answer",
    location=BEYOND,
    cells=cells,
    figures=figures,
    table=table,
    order=15,
)
