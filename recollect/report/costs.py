"""What each method cost in network evaluations, with generate-and-filter beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recollect.report.numbers import MISSING
from recollect.report.read import SavedAudit


@dataclass(frozen=True)
class Cost:
    """One line of the table, as text."""

    method: str
    a_try: str  # network evaluations for an image and mask, or for a sample
    total: str
    recovered: str
    each: str  # network evaluations for each training image that was recovered


def build_costs(audit: SavedAudit) -> list[Cost]:
    """List the methods of the audit, and generate-and-filter if it was run."""
    scored = audit.block("train").get("images", 0)
    costs = [_cost(row["method"], row, row["evaluations_a_try"], scored) for row in audit.table("costs")]
    return [*costs, *_generated(audit)]


def _generated(audit: SavedAudit) -> Iterator[Cost]:
    generated = audit.block("generated")
    if generated:
        row = {**generated, "recovered": generated["distinct"]["approximate"]}
        name = f"generate and filter, {generated['samples']:,} samples"
        yield _cost(name, row, generated["evaluations"] / generated["samples"], generated["training_images"])


def _cost(name: str, row: Mapping[str, Any], a_try: float, images: int) -> Cost:
    each = row["evaluations_each"]
    return Cost(
        name,
        a_try=f"{a_try:,.0f}",
        total=f"{row['evaluations']:,}",
        recovered=f"{row['recovered']:,} of {images:,}",
        each=MISSING if each is None else f"{each:,.0f}",
    )
