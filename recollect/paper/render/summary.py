"""The paper's own numbers beside ours, and what is measured: the first table of the page about the reproduction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from recollect.paper.cells import Cell
from recollect.paper.experiments import EXPERIMENTS, accurate, moderate_fc, moderate_unet
from recollect.paper.render.tables import markdown, network_name, percent
from recollect.paper.scales import Scale
from recollect.paper.store import Store

NOT_STATED = "not in it"
HEAD = ["experiment", "network", "method", "paper, its masks", "here, our masks"]
SHOWN = (  # methods, and whether the kept values of y are pasted; None: the method's own answer
    ("iterate", None), ("blind", None), ("blind", True), ("refined", None), ("known", None), ("known", False),
    ("zero-rule", None), ("ddnm", None), ("biharmonic", None),
)  # fmt: skip


def summary(scale: Scale, store: Store) -> str:
    """Make the table of all rates that the paper states as numbers, and a sentence on what is measured."""
    rows = [*_moderate("Table 1", moderate_fc.cells(scale), moderate_fc.PAPER, store)]
    rows += _moderate("Table 2", moderate_unet.cells(scale), moderate_unet.PAPER, store)
    rows += _last_mask(scale, store)
    if not rows:
        return ""
    return f"{markdown(HEAD, rows)}\n{_measured(scale, store)}\n"


def shares(cells: Iterable[Cell], store: Store, method: str) -> list[str]:
    """Read the approximate rates of one method in percent, by mask; a dash for a mask without a record.

    Nothing is returned if no mask has a record.
    """
    records = [store.shown(cell) for cell in cells if cell.method == method]
    if not any(records):
        return []
    return [percent(record.score.approximate) if record else "-" for record in records]


def at_the_papers_gamma(cells: Iterable[Cell]) -> list[Cell]:
    """Choose the cells of training images whose gamma is the paper's."""
    return [cell for cell in cells if cell.set == "train" and cell.gamma is None]


def _moderate(
    location: str, cells: Sequence[Cell], paper: Mapping[str, Sequence[float]], store: Store
) -> list[list[str]]:
    chosen = at_the_papers_gamma(cells)
    fit = chosen[0].fit  # the paper's own network comes first
    rows = []
    own = [cell for cell in chosen if cell.fit == fit]
    for method, paste in SHOWN:
        answers = [replace(cell, paste=paste) for cell in own if cell.method == method]
        if ours := shares(answers, store, method):
            papers = ", ".join(f"{value:g}" for value in paper.get(method, ())) if paste is None else ""
            rows.append([location, network_name(fit), answers[0].method_name, papers or NOT_STATED, ", ".join(ours)])
    return rows


def _last_mask(scale: Scale, store: Store) -> list[list[str]]:
    """Compare accurate recovery from U-Nets under the last mask, the one cell of Figure 3 that the paper states."""
    rows: dict[tuple[str, ...], None] = {}  # all networks share the rows of generic methods
    for cell in accurate.cells(scale):
        record = store.shown(cell) if _is_in_the_text(cell, scale) else None
        if record:
            network = network_name(cell.fit) if cell.sees_network else "none"
            papers = f"{accurate.PAPER[cell.method]:g}" if cell.method in accurate.PAPER else NOT_STATED
            rows["Figure 3", network, cell.method, papers, percent(record.score.accurate)] = None
    return [list(row) for row in sorted(rows, key=lambda row: row[1] == "none")]


def _is_in_the_text(cell: Cell, scale: Scale) -> bool:
    stated = cell.method in (*accurate.PAPER, *accurate.REFERENCES) and cell.mask == scale.masks[-1]
    network = (cell.fit.kind, cell.fit.optimizer) == ("unet", "muon") and cell.fit == cell.fit.first
    return stated and network and cell.is_at_last_loss and cell.gamma is None


def _measured(scale: Scale, store: Store) -> str:
    """Say what the records took, and how many are of an earlier version."""
    planned = {cell.key: cell for experiment in EXPERIMENTS.values() for cell in experiment.cells(scale)}
    missing = [cell for cell in planned.values() if store.is_missing(cell)]
    done = f"{len(planned) - len(missing)} of {len(planned)} cells are measured with this version"
    earlier = sum(store.shown(cell) is not None for cell in missing)
    if missing:
        done += f"; {earlier} others show an earlier one"
    return f"{done}. Training and recovery took {_minutes(store):.0f} minutes on one H200."


def _minutes(store: Store) -> float:
    """Add up the minutes of training and recovery on an H200; other devices are not comparable."""
    parts = [(training["provenance"], training["seconds"]) for training in store.trainings()]
    parts += [(record.provenance, record.seconds) for record in store.records()]
    return sum(seconds for provenance, seconds in parts if "H200" in provenance["device"]) / 60
