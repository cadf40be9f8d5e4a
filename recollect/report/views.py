"""Records in the order of the page: views (one a checkpoint or model), and in each the rates by mask and method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.records import Record
from recollect.report.numbers import MASKS, METHODS, percent, plain_value
from recollect.report.read import Audit
from recollect.scoring import APPROXIMATE, Rate, Score

START = APPROXIMATE  # the threshold that the page opens with
ANY = "any mask"
PLACE = ("set", "mask", "method")
SETS = ("train", "control")


@dataclass(frozen=True, eq=False)
class Pool:
    """One live rate: of one record, or of the best of several, image by image."""

    cells: list[int]  # numbers of records
    score: Score


@dataclass(frozen=True)
class Bar:
    """A rate as it stands on the page when it opens; the script finds it again by its pool."""

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

    facets: dict[str, Any]  # what tells it from other views, train loss included
    pools: dict[tuple[str, str, str], int]  # by set, mask (or ANY) and method

    @property
    def label(self) -> str:
        names = {"milestone": "train loss"}
        return ", ".join(f"{names.get(k, k)} {plain_value(v)}" for k, v in self.facets.items()) or "all"

    @property
    def milestone(self) -> float | None:
        value = self.facets.get("milestone")
        return float(value) if value is not None else None


@dataclass(frozen=True, eq=False)
class Results:
    """Everything the page draws from the records, in the page's order."""

    records: list[Record]
    sets: list[str]
    masks: list[str]
    methods: list[str]
    pools: list[Pool] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    def bar(self, view: View, place: tuple[str, str, str]) -> Bar | None:
        number = view.pools.get(place)
        return None if number is None else Bar(number, self.pools[number].score.rate(START))

    def record(self, view: View, place: tuple[str, str, str]) -> Record | None:
        number = view.pools.get(place)
        return None if number is None else self.records[self.pools[number].cells[0]]

    @property
    def rows(self) -> list[str]:
        """Masks as rows of a table, the best of them first where there are several."""
        several = any(mask == ANY for view in self.views for _, mask, _ in view.pools)
        return [ANY, *self.masks] if several else self.masks


def results_of(audit: Audit) -> Results:
    """Sort the records into views; the best over all masks is one more row of each view."""
    cells = [record.cell for record in audit.records]
    listed = [str(row["mask"]) for row in audit.table("summary") if "mask" in row]
    results = Results(
        audit.records,
        sets=_first(SETS, {str(c["set"]) for c in cells}),
        masks=_first([*listed, *MASKS], {str(c["mask"]) for c in cells}),
        methods=_first(METHODS, {str(c["method"]) for c in cells}),
    )
    for facets, numbers in _by_facets(cells):
        pools = {_place(cells[n]): _add(results, [n]) for n in numbers}
        for set_ in results.sets:
            for method in results.methods:
                same = [n for n in numbers if (str(cells[n]["set"]), str(cells[n]["method"])) == (set_, method)]
                if len(same) > 1 and len({tuple(audit.records[n].ids) for n in same}) == 1:
                    pools[set_, ANY, method] = _add(results, same)
        results.views.append(View(facets, pools))
    results.views.sort(key=lambda v: (str(_without_milestone(v.facets)), v.milestone or 0.0))
    return results


def slot_of(method: str, methods: Sequence[str]) -> int:
    """A method's colour: the same in every report for the known ones."""
    known = list(METHODS)
    return known.index(method) if method in known else len(known) + [m for m in methods if m not in known].index(method)


def families(views: list[View]) -> list[list[View]]:
    """Views that differ by their train loss alone, from the largest loss to the smallest."""
    groups: dict[str, list[View]] = {}
    for view in views:
        if view.milestone is not None:
            groups.setdefault(str(_without_milestone(view.facets)), []).append(view)
    return [sorted(g, key=lambda v: -(v.milestone or 0)) for g in groups.values() if len(g) > 1]


def _add(results: Results, cells: list[int]) -> int:
    results.pools.append(Pool(cells, Score.best_of([results.records[n].score for n in cells])))
    return len(results.pools) - 1


def _by_facets(cells: list[Mapping[str, Any]]) -> list[tuple[dict[str, Any], list[int]]]:
    """Record numbers by all that a cell says beyond set, mask and method; what never varies is left out."""
    extra = [{k: v for k, v in cell.items() if k not in PLACE} for cell in cells]
    keys = list(dict.fromkeys(k for e in extra for k in e))
    varying = [k for k in keys if len({str(e.get(k)) for e in extra}) > 1]
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for number, facets in enumerate(extra):
        kept = {k: facets[k] for k in varying if k in facets}
        groups.setdefault(str(sorted(kept.items(), key=str)), (kept, []))[1].append(number)
    return list(groups.values())


def _without_milestone(facets: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in facets.items() if k != "milestone"}


def _place(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(cell["set"]), str(cell["mask"]), str(cell["method"])


def _first(preferred: Iterable[str], present: set[str]) -> list[str]:
    """The present names, those with a preferred place first."""
    known = [name for name in dict.fromkeys(preferred) if name in present]
    return known + sorted(present - set(known))
