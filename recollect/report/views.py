"""Records in the order of the page: one view a checkpoint, and in each the rates by mask and method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.records import Record
from recollect.report.numbers import as_text, percent
from recollect.report.read import Cell, MethodFacts, SavedAudit
from recollect.scoring import APPROXIMATE, Rate, Score

ANY_MASK = "any mask"
SET_LABELS = {"train": "training", "control": "unseen"}


@dataclass(frozen=True, eq=False)
class Pool:
    """The images behind one rate: those of one record, or of several with the smallest error of each image."""

    records: list[int]  # their numbers in Results.records
    score: Score


@dataclass(frozen=True)
class Bar:
    """A rate at the threshold that the page opens with; the script finds it by its pool and updates it."""

    pool: int
    rate: Rate

    @property
    def low(self) -> float:
        return self.rate.interval[0]

    @property
    def high(self) -> float:
        return self.rate.interval[1]

    @property
    def text(self) -> str:
        return percent(self.rate.value)

    @property
    def interval(self) -> str:
        return f"{100 * self.low:.1f}–{100 * self.high:.1f}"


@dataclass(frozen=True, eq=False)
class View:
    """All cells of one model at one checkpoint."""

    facets: dict[str, Any]  # in what it differs from other views, for example the train loss ("milestone")
    pools: dict[Cell, int]  # numbers in Results.pools; the mask may be ANY_MASK

    @property
    def label(self) -> str:
        names = {"milestone": "train loss"}
        return ", ".join(f"{names.get(name, name)} {as_text(value)}" for name, value in self.facets.items()) or "all"

    @property
    def milestone(self) -> float | None:
        value = self.facets.get("milestone")
        if value is None:
            return None
        return float(value)

    @property
    def family(self) -> dict[str, Any]:
        """The facets without the train loss: one training run."""
        return {name: value for name, value in self.facets.items() if name != "milestone"}


@dataclass(frozen=True, eq=False)
class Results:
    """Everything the page draws from the records, in the page's order."""

    records: list[Record]
    sets: list[str]
    masks: list[str]
    method_facts: dict[str, MethodFacts]
    threshold: float = APPROXIMATE  # that the page opens with: the headline's
    pools: list[Pool] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        return list(self.method_facts)

    @property
    def rows(self) -> list[str]:
        """The masks as rows of a table; with several masks the best of them comes first."""
        if any(cell.mask == ANY_MASK for view in self.views for cell in view.pools):
            return [ANY_MASK, *self.masks]
        return self.masks

    def colour(self, method: str) -> str:
        return self.method_facts[method].colour

    def bar(self, view: View, cell: Cell | tuple[str, str, str]) -> Bar | None:
        number = view.pools.get(Cell(*cell))
        if number is None:
            return None
        return Bar(number, self.pools[number].score.rate(self.threshold))

    def record(self, view: View, cell: Cell) -> Record | None:
        number = view.pools.get(cell)
        if number is None:
            return None
        return self.records[self.pools[number].records[0]]


def build_results(audit: SavedAudit) -> Results:
    """Sort the records into views; with several masks each view has one more row for the best of them."""
    cells = [Cell.of(record.cell) for record in audit.records]
    results = Results(
        audit.records,
        sets=sorted(_unique(cell.set for cell in cells), key=lambda name: name != "train"),
        masks=_unique(cell.mask for cell in cells),
        method_facts=audit.method_facts(),
        threshold=audit.threshold,
    )
    for facets, numbers in _by_facets(audit.records):
        pools = {cells[number]: _add_pool(results, [number]) for number in numbers}
        for alike in _under_all_masks(audit.records, numbers):
            first = cells[alike[0]]
            pools[Cell(first.set, ANY_MASK, first.method)] = _add_pool(results, alike)
        results.views.append(View(facets, pools))
    results.views.sort(key=lambda view: (str(view.family), view.milestone or 0.0))
    return results


def training_runs(views: Sequence[View]) -> list[list[View]]:
    """Group views that differ only in their train loss, from the largest loss to the smallest."""
    runs: dict[str, list[View]] = {}
    for view in views:
        if view.milestone is not None:
            runs.setdefault(str(view.family), []).append(view)
    return [sorted(run, key=lambda view: -(view.milestone or 0.0)) for run in runs.values() if len(run) > 1]


def _under_all_masks(records: Sequence[Record], numbers: Sequence[int]) -> list[list[int]]:
    """Group the records of one set and method whose images are the same under every mask."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number in numbers:
        cell = Cell.of(records[number].cell)
        groups.setdefault((cell.set, cell.method), []).append(number)
    return [group for group in groups.values() if len(group) > 1 and _same_images(records, group)]


def _same_images(records: Sequence[Record], numbers: Sequence[int]) -> bool:
    return len({tuple(records[number].ids) for number in numbers}) == 1


def _add_pool(results: Results, numbers: list[int]) -> int:
    results.pools.append(Pool(numbers, Score.best_of([results.records[number].score for number in numbers])))
    return len(results.pools) - 1


def _by_facets(records: Sequence[Record]) -> list[tuple[dict[str, Any], list[int]]]:
    """Group record numbers by all that their cells say beyond set, mask and method, if it varies."""
    keys = _unique(key for record in records for key in record.cell if key not in Cell._fields)
    varying = [key for key in keys if len({str(record.cell.get(key)) for record in records}) > 1]
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for number, record in enumerate(records):
        facets = {key: record.cell[key] for key in varying if key in record.cell}
        groups.setdefault(str(sorted(facets.items(), key=str)), (facets, []))[1].append(number)
    return list(groups.values())


def _unique(names: Iterable[str]) -> list[str]:
    """List names once each, in the order of their first appearance."""
    return list(dict.fromkeys(names))
