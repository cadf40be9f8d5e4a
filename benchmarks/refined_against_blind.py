"""Refined beside blind in the records of a suite: the sentences of docs/methods.md.

    python benchmarks/refined_against_blind.py results/paper/full

Prints, for each set: cells, in how many refined recovers at least as many and more images, and what it costs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from recollect.records import Record, read_records

Pair = tuple[Record, Record]


def main(folder: str) -> None:
    pairs = pair_up(read_records(Path(folder) / "cells"))
    for name in dict.fromkeys(str(blind.cell["set"]) for blind, _ in pairs):
        print(f"{name}: {summary([pair for pair in pairs if pair[0].cell['set'] == name])}")


def pair_up(records: Iterable[Record]) -> list[Pair]:
    """Blind and refined on the same cell; cells that one of them was not run on are left out."""
    found: dict[str, dict[tuple[tuple[str, str], ...], Record]] = {"blind": {}, "refined": {}}
    for record in records:
        if (method := str(record.cell["method"])) in found:
            place = tuple(sorted((k, str(v)) for k, v in record.cell.items() if k != "method"))
            found[method][place] = record
    return [(blind, found["refined"][place]) for place, blind in found["blind"].items() if place in found["refined"]]


def summary(pairs: list[Pair]) -> str:
    costs = [sum(refined.steps) / sum(blind.steps) for blind, refined in pairs]
    parts = [f"{len(pairs)} cells"]
    for kind in ("accurate", "approximate"):
        rates = [[getattr(record.score, kind).value for record in pair] for pair in pairs]
        blind, refined = (100 * sum(column) / len(pairs) for column in zip(*rates, strict=True))
        at_least, more = sum(r >= b for b, r in rates), sum(r > b for b, r in rates)
        parts.append(f"{kind} at least as many in {at_least}, more in {more}, mean {blind:.1f}% to {refined:.1f}%")
    return "; ".join([*parts, f"steps over blind's: mean {sum(costs) / len(costs):.2f}, worst {max(costs):.2f}"])


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 2 else sys.exit(__doc__)
