"""The same recovery on images that were never trained on: what is found there is not memory."""

from __future__ import annotations

from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import fits
from recollect.paper.render.tables import markdown, network_name, percent
from recollect.paper.scales import Scale
from recollect.paper.store import Results
from recollect.scoring import Rate

PAPER = "0 accurate everywhere; 0 approximate but for 2 of 600 with an FC network on mask 3"
METHODS = ("iterate", "blind", "known", "refined")


def cells(scale: Scale) -> list[Cell]:
    return [
        Cell(fit, fit.milestones[-1], "control", mask, method)
        for fit in fits(scale)
        for mask in scale.masks
        for method in METHODS
    ]


def table(scale: Scale, results: Results) -> str:
    """A row a network and method: recovered of all control images under all masks, and the worst mask."""
    rows = []
    for fit in fits(scale):
        for method in METHODS:
            own = [c for c in cells(scale) if c.fit == fit and c.method == method]
            found = {cell.mask: record for cell in own if (record := results.best_of(cell))}
            if not found:
                continue
            accurate, approximate = (
                _pooled([rate(record.score) for record in found.values()])
                for rate in (lambda score: score.accurate, lambda score: score.approximate)
            )
            worst = max(found, key=lambda mask: found[mask].score.approximate.count)
            most = found[worst].score.approximate
            where = f"{most.count} of {most.total} on {worst}" if most.count else "none"
            rows.append([network_name(fit), fit.optimizer, method, _told(accurate), _told(approximate), where])
    titles = ["network", "optimizer", "method", "accurate", "approximate", "most approximate on one mask"]
    return f"Paper: {PAPER}.\n\n{markdown(titles, rows)}"


def _pooled(rates: list[Rate]) -> Rate:
    return Rate(sum(rate.count for rate in rates), sum(rate.total for rate in rates))


def _told(rate: Rate) -> str:
    return f"{rate.count} of {rate.total} ({percent(rate)}%)"


EXPERIMENT = Experiment(
    id="control",
    shows="recovery of as many images that were not trained on, train loss 1e-8",
    where="Section 4, text",
    cells=cells,
    table=table,
)
