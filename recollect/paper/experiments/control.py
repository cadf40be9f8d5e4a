"""The same recovery on unseen images: what is recovered there was not memorized."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import fits
from recollect.paper.render.tables import markdown, network_name, percent
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import Rate, Score

PAPER = "0 accurate everywhere; 0 approximate but for 2 of 600 with an FC network on mask 3"
METHODS = ("iterate", "blind", "known", "refined")


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "control", mask, method)
        for fit in fits(scale)
        for mask in scale.masks
        for method in METHODS
    ]


def table(scale: Scale, store: Store) -> str:
    """Make a row for each network and method: unseen images recovered over all masks, and the worst mask."""
    groups: dict[tuple[Fit, str], dict[str, Score]] = {}
    for cell in cells(scale):
        scores = groups.setdefault((cell.fit, cell.method), {})
        if record := store.shown(cell):
            scores[cell.mask] = record.score
    rows = []
    for fit in fits(scale):
        for method in METHODS:
            if scores := groups[fit, method]:
                rows.append([network_name(fit), fit.optimizer, method, *_summary(scores)])
    titles = ["network", "optimizer", "method", "accurate", "approximate", "most approximate on one mask"]
    return f"Paper: {PAPER}.\n\n{markdown(titles, rows)}"


def _summary(scores: dict[str, Score]) -> list[str]:
    """Pool the rates of all masks, and name the mask with the most approximate recoveries."""
    accurate = _pooled([score.accurate for score in scores.values()])
    approximate = _pooled([score.approximate for score in scores.values()])
    worst = max(scores, key=lambda mask: scores[mask].approximate.count)
    most = scores[worst].approximate
    worst_mask = f"{most.count} of {most.total} on {worst}" if most.count else "none"
    return [_count(accurate), _count(approximate), worst_mask]


def _pooled(rates: Sequence[Rate]) -> Rate:
    return Rate(sum(rate.count for rate in rates), sum(rate.total for rate in rates))


def _count(rate: Rate) -> str:
    return f"{rate.count} of {rate.total} ({percent(rate)}%)"


EXPERIMENT = Experiment(
    name="control",
    summary="recovery of as many unseen images, train loss 1e-8",
    location="Section 4, text",
    cells=cells,
    table=table,
    order=6,
)
