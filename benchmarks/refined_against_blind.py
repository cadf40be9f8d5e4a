"""Refined beside blind in the records of a suite: cells, rates and cost.

    python benchmarks/refined_against_blind.py results/paper/full

Prints, for each set: cells, in how many refined recovers at least as many and more images, and what it costs; then the
means beside those of the known mask with 400 steps, over the cells that have both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from recollect.paper.store import Store
from recollect.records import Record

Pair = tuple[Record, Record]


def main(folder: str) -> None:
    records = Store(folder).records()
    for name in dict.fromkeys(str(record.cell["set"]) for record in records):
        of_set = [record for record in records if record.cell["set"] == name]
        print(f"{name}: {summary(pair_up(of_set, 'blind', 'refined'))}")
        if pairs := pair_up(of_set, "known-400", "refined"):
            print(f"{name}: {len(pairs)} cells with known-400: {', '.join(means(pairs))}")


def pair_up(records: Iterable[Record], one: str, other: str) -> list[Pair]:
    """Pair the records of two methods on the same cell; cells that only one was run on are left out."""
    by_method: dict[str, dict[tuple[tuple[str, str], ...], Record]] = {one: {}, other: {}}
    for record in records:
        if (method := str(record.cell["method"])) in by_method:
            cell = tuple(sorted((k, str(v)) for k, v in record.cell.items() if k != "method"))
            by_method[method][cell] = record
    partners = by_method[other]
    return [(record, partners[cell]) for cell, record in by_method[one].items() if cell in partners]


def means(pairs: list[Pair]) -> Iterator[str]:
    for kind in ("accurate", "approximate"):
        rates = [[getattr(record.score, kind).value for record in pair] for pair in pairs]
        first, second = (100 * sum(column) / len(pairs) for column in zip(*rates, strict=True))
        yield f"mean {kind} {first:.1f}% to {second:.1f}%"


def summary(pairs: list[Pair]) -> str:
    costs = [sum(refined.steps) / sum(blind.steps) for blind, refined in pairs]
    parts = [f"{len(pairs)} cells"]
    for kind in ("accurate", "approximate"):
        rates = [[getattr(record.score, kind).value for record in pair] for pair in pairs]
        at_least, more = sum(r >= b for b, r in rates), sum(r > b for b, r in rates)
        parts.append(f"{kind} at least as many in {at_least}, more in {more}")
    return "; ".join(
        [*parts, *means(pairs), f"steps over blind's: mean {sum(costs) / len(costs):.2f}, worst {max(costs):.2f}"]
    )


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 2 else sys.exit(__doc__)
