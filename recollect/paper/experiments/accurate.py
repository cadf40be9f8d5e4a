"""The paper's main figure: accurate recovery against the train loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import perfect_fit
from recollect.paper.experiments.perfect_fit import WITH_NETWORK
from recollect.paper.render.panels import rate_below
from recollect.paper.render.tables import (
    by_mask,
    compare_with_iterate,
    markdown,
    network_name,
    rate_of_trainings,
)
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import ACCURATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCES = ("zero-rule", "biharmonic")  # beside the methods of the paper
PAPER = {"blind": 78.0, "iterate": 4.0, "ddnm": 0.0}  # a U-Net (it does not say which) at 1e-8, its mask 6, percent
GAMMA = 0.5  # the paper's for LReLU, here with PReLU too: at the paper's 0.1 for PReLU 40 steps do not reach an image


def cells(scale: Scale) -> list[Cell]:
    return perfect_fit.cells(scale) + _cells_with_other_gamma(scale)


def _cells_with_other_gamma(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "train", mask, method, gamma=GAMMA)
        for fit in perfect_fit.fits(scale, ("fc10",))
        if fit.activation == "prelu"
        for mask in scale.masks
        for method in ("blind", "known")
    ]


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    from recollect.paper.render.draw import PERCENT

    return perfect_fit.figures(scale, store, "accurate", rate_below(ACCURATE), PERCENT, "Accurate recovery")


def table(scale: Scale, store: Store) -> str:
    """Make the tables: all masks at the last train loss, the cell of the paper's own numbers, blind beside iterate."""
    shared = perfect_fit.cells(scale)
    return (
        f"Accurate recovery in percent, {' / '.join(WITH_NETWORK)}:\n\n"
        + by_mask(store, shared, WITH_NETWORK, ACCURATE)
        + _gamma_table(scale, store)
        + "\nU-Net at the last train loss, accurate recovery in percent; the paper's mask 6 is not in its source:\n\n"
        + _numbers_in_text(scale, store)
        + "\n"
        + compare_with_iterate(store, shared, ACCURATE)
    )


def _gamma_table(scale: Scale, store: Store) -> str:
    cells = _cells_with_other_gamma(scale)
    if not any(store.shown(cell) for cell in cells):
        return ""
    rates = by_mask(store, cells, ("blind", "known"), ACCURATE)
    return f"\nThe same with a gamma of {GAMMA:g} in place of the paper's 0.1, blind / known:\n\n{rates}"


def _numbers_in_text(scale: Scale, store: Store) -> str:
    """Make the table of the numbers that the paper gives in its text."""
    methods = (*PAPER, *REFERENCES)
    stated = [f"{PAPER[method]:.0f}" if method in PAPER else "not in it" for method in methods]
    rows = [["paper", "not said", "1e-08", "its mask 6", *stated]]
    groups = _under_last_mask(scale, store)
    for fit in perfect_fit.fits(scale, ("unet",)):
        if blind := groups.get((fit, "blind")):  # the generic method's record may exist before any network
            rates = [rate_of_trainings(groups.get((fit, method), []), ACCURATE) or "-" for method in methods]
            loss = f"{blind[0].provenance['train_loss']:.1e}"
            rows.append([network_name(fit), fit.optimizer, loss, scale.masks[-1], *rates])
    return markdown(["network", "optimizer", "train loss", "mask", *methods], rows)


def _under_last_mask(scale: Scale, store: Store) -> dict[tuple[Fit, str], list[Record]]:
    """Group the records of the last loss under the last mask by network and method, all trainings together."""
    groups: dict[tuple[Fit, str], list[Record]] = {}
    for cell in perfect_fit.cells(scale):
        if cell.mask == scale.masks[-1] and cell.is_at_last_loss and (record := store.shown(cell)):
            groups.setdefault((cell.fit.first, cell.method), []).append(record)
    return groups


EXPERIMENT = Experiment(
    name="accurate",
    summary="accurate recovery rate (MSE < 1e-7) against the train loss, six masks",
    location="Figure 3",
    cells=cells,
    figures=figures,
    table=table,
    order=2,
)
