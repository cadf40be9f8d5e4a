"""Records in the order of the page: the rates by set, mask and method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recollect.records import ANY_MASK, Record
from recollect.report.numbers import percent
from recollect.report.read import Cell, MethodFacts, SavedAudit
from recollect.scoring import APPROXIMATE, Rate, Score


@dataclass(frozen=True, eq=False)
class Pool:
    """The images behind one rate: those of one record, or of several with the smallest error of each image."""

    number: int  # by which the script finds it
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
class Results:
    """Everything the page draws from the records, in the page's order."""

    records: list[Record]
    sets: list[str]
    masks: list[str]
    method_facts: dict[str, MethodFacts]
    threshold: float = APPROXIMATE  # that the page opens with: the headline's
    pools: dict[Cell, Pool] = field(default_factory=dict)  # the mask may be ANY_MASK

    @property
    def methods(self) -> list[str]:
        return list(self.method_facts)

    @property
    def rows(self) -> list[str]:
        """The masks as rows of a table; with several masks the best of them comes first."""
        if any(cell.mask == ANY_MASK for cell in self.pools):
            return [ANY_MASK, *self.masks]
        return self.masks

    def colour(self, method: str) -> str:
        return self.method_facts[method].colour

    def bar(self, cell: Cell | tuple[str, str, str]) -> Bar | None:
        pool = self.pools.get(Cell(*cell))
        return Bar(pool.number, pool.score.rate(self.threshold)) if pool else None

    def record(self, cell: Cell) -> Record | None:
        pool = self.pools.get(cell)
        return self.records[pool.records[0]] if pool else None


def build_results(audit: SavedAudit) -> Results:
    """Sort the records into cells; with several masks there is one more row for the best of them."""
    cells = [Cell.of(record.cell) for record in audit.records]
    numbers = {cell: [number] for number, cell in enumerate(cells)} | _under_all_masks(audit.records, cells)
    return Results(
        audit.records,
        sets=sorted(_unique(cell.set for cell in cells), key=lambda name: name != "train"),
        masks=_unique(cell.mask for cell in cells),
        method_facts=audit.method_facts(),
        threshold=audit.threshold,
        pools={cell: _pool(audit.records, number, joined) for number, (cell, joined) in enumerate(numbers.items())},
    )


def _under_all_masks(records: Sequence[Record], cells: Sequence[Cell]) -> dict[Cell, list[int]]:
    """Group the records of one set and method whose images are the same under every mask."""
    groups: dict[Cell, list[int]] = {}
    for number, cell in enumerate(cells):
        groups.setdefault(cell._replace(mask=ANY_MASK), []).append(number)
    return {cell: group for cell, group in groups.items() if len(group) > 1 and _same_images(records, group)}


def _same_images(records: Sequence[Record], numbers: Sequence[int]) -> bool:
    return len({tuple(records[number].ids) for number in numbers}) == 1


def _pool(records: Sequence[Record], number: int, joined: list[int]) -> Pool:
    return Pool(number, joined, Score.best_of([records[record].score for record in joined]))


def _unique(names: Iterable[str]) -> list[str]:
    """List names once each, in the order of their first appearance."""
    return list(dict.fromkeys(names))
