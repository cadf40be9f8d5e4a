"""The table of all numbers: one row for each set, mask and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.records import SET_LABELS, Record
from recollect.report.numbers import decimals, percent
from recollect.report.read import Cell, SavedAudit
from recollect.report.results import Bar, Results


@dataclass(frozen=True)
class Row:
    """One line of the table; texts of a single record are empty where a row joins several."""

    cell: Cell
    bar: Bar
    accurate: str
    approximate: str
    psnr: str = ""
    mask_accuracy: str = ""
    mask_iou: str = ""
    stops: str = ""

    @property
    def set_label(self) -> str:
        return SET_LABELS[self.cell.set]


def build_rows(results: Results) -> Iterator[Row]:
    for cell in sorted(results.pools, key=lambda cell: _order(results, cell)):
        yield _row(results, cell)


def excess_texts(audit: SavedAudit) -> dict[Cell, tuple[str, str]]:
    """Write how far the training rate is above that of unseen images, accurate and approximate."""
    return {
        Cell("train", row["mask"], row["method"]): (_excess(row["accurate"]), _excess(row["approximate"]))
        for row in audit.table("excess")
    }


def other_image_texts(audit: SavedAudit) -> dict[Cell, str]:
    """Write how many recoveries ended approximately on another training image, and on how many different ones."""
    rows = [row for row in audit.table("summary") if row.get("other_training_images")]
    return {Cell.of(row): _ends(row["other_training_images"]) for row in rows}


def _ends(others: Mapping[str, int]) -> str:
    if not others["recoveries"]:
        return "0"
    return f"{others['recoveries']} ({others['different']} different)"


def _row(results: Results, cell: Cell) -> Row:
    pool, bar = results.pools[cell], results.bar(cell)
    assert bar is not None  # the cell has a pool
    texts = {"accurate": percent(pool.score.accurate.value), "approximate": percent(pool.score.approximate.value)}
    if len(pool.records) == 1:
        texts |= _record_texts(results.records[pool.records[0]])
    return Row(cell, bar, **texts)


def _record_texts(record: Record) -> dict[str, str]:
    counts = Counter(record.stop).most_common()
    return {
        "psnr": decimals(record.score.mean_psnr),
        "mask_accuracy": _mean(record.mask_accuracy),
        "mask_iou": _mean(record.mask_iou),
        "stops": ", ".join(f"{count} {reason}" for reason, count in counts),
    }


def _order(results: Results, cell: Cell) -> tuple[int, int, int]:
    return results.rows.index(cell.mask), results.methods.index(cell.method), results.sets.index(cell.set)


def _mean(values: Sequence[float] | None) -> str:
    if not values:
        return ""
    return decimals(sum(values) / len(values), 3)


def _excess(excess: Mapping[str, Any]) -> str:
    return f"{excess['value']:+.1%} [{excess['low']:+.1%}, {excess['high']:+.1%}]"
