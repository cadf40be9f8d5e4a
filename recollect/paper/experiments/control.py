"""The same recovery on unseen images: what is recovered there was not memorized."""

from __future__ import annotations

from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import fits, with_references
from recollect.paper.render.tables import markdown, network_name, percent, pooled
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import Rate, Score

PAPER = "0 accurate everywhere; 0 approximate but for 2 of 600 with an FC network on mask 3"
METHODS = ("iterate", "blind", "known", "refined")
Row = tuple[str, str, str]  # network, optimizer, method


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "control", mask, method)
        for fit in fits(scale)
        for mask in scale.masks
        for method in with_references(fit, METHODS)
    ]


def table(scale: Scale, store: Store) -> str:
    """Make a row for each network and method: unseen images recovered over all masks, and the worst mask."""
    groups: dict[Row, dict[str, Score]] = {}
    for cell in sorted(cells(scale), key=lambda cell: not cell.sees_network):
        if record := store.shown(cell):
            groups.setdefault(_row(cell), {})[cell.mask] = record.score
    rows = [[*row, *_summary(scores)] for row, scores in groups.items()]
    titles = ["network", "optimizer", "method", "accurate", "approximate", "most approximate on one mask"]
    return f"Paper: {PAPER}.\n\n{markdown(titles, rows)}"


def _row(cell: Cell) -> Row:
    """Name the row of a cell; all networks on the same images share that of a generic method."""
    if cell.sees_network:
        return network_name(cell.fit), cell.fit.optimizer, cell.method
    return f"none, on {cell.fit.images.name}", "", cell.method


def _summary(scores: dict[str, Score]) -> list[str]:
    """Pool the rates of all masks, and name the mask with the most approximate recoveries."""
    accurate = pooled(score.accurate for score in scores.values())
    approximate = pooled(score.approximate for score in scores.values())
    worst = max(scores, key=lambda mask: scores[mask].approximate.count)
    most = scores[worst].approximate
    worst_mask = f"{most.count} of {most.total} on {worst}" if most.count else "none"
    return [_count(accurate), _count(approximate), worst_mask]


def _count(rate: Rate) -> str:
    return f"{rate.of_total} ({percent(rate)}%)"


EXPERIMENT = Experiment(
    name="control",
    summary="recovery of as many unseen images, train loss 1e-8",
    location="Section 4, text",
    cells=cells,
    table=table,
    order=6,
)
