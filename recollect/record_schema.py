"""What a record has to hold: read from disk, it may have been edited."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from recollect.errors import is_number


@dataclass(frozen=True)
class Column:
    """The types of a column's values, as JSON gives them, and the bound of its numbers, which begin at 0."""

    types: Set[type]
    below: float = math.inf
    optional: bool = False  # the column as a whole

    def holds(self, values: Any) -> bool:
        if not isinstance(values, list) or not set(map(type, values)) <= self.types:
            return False
        if str in self.types:
            return True
        numbers = [value for value in values if value is not None]
        return not numbers or (min(numbers) >= 0 and max(numbers) < self.below)


NULL = type(None)  # of an estimate that was not finite
TEXT, WHOLE, ERROR = Column({str}), Column({int}), Column({int, float, NULL})
SHARE = Column({int, float, NULL}, below=math.nextafter(1, 2), optional=True)
COLUMNS: Mapping[str, Column] = {
    "ids": TEXT, "mse": ERROR, "rounds": WHOLE, "steps": WHOLE, "stop": TEXT, "mask_accuracy": SHARE,
    "mask_iou": SHARE, "nearest": Column({str, NULL}, optional=True),
    "nearest_index": Column({int, NULL}, optional=True), "nearest_mse": replace(ERROR, optional=True),
    "mse_pasted": replace(ERROR, optional=True), "mse_unpasted": replace(ERROR, optional=True),
}  # fmt: skip
CYCLE = (WHOLE, WHOLE, ERROR, ERROR)  # position, rounds, lowest and highest error


def problem_of(data: Mapping[str, Any]) -> str:
    """Say what is wrong with the values of a record; nothing if all is well."""
    for name in ("cell", "settings", "provenance"):
        if not isinstance(data[name], dict):
            return f"its {name} is no list of named values"
    if not is_number(data["seconds"]) or not 0 <= data["seconds"] < math.inf:
        return "its seconds are no time"
    if not isinstance(data["pictures_hash"], str | None):
        return "its pictures_hash is no text"
    problems = (_column_problem(name, data[name], data["mse"]) for name in COLUMNS)
    return next(filter(None, problems), "") or _cycles_problem(data["cycles"], data["mse"])


def _cycles_problem(cycles: Any, errors: list[Any]) -> str:
    """Say what is wrong with the cycles: a few rows, not a column."""
    if cycles is None:
        return ""
    if not isinstance(cycles, list) or not all(map(_is_cycle, cycles)):
        return "its cycles are not what they should be"
    if any(position >= len(errors) for position, *_ in cycles):
        return "it has cycles of images that it does not have"
    return ""


def _is_cycle(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != len(CYCLE):
        return False
    return all(kind.holds([value]) for kind, value in zip(CYCLE, row, strict=True))


def _column_problem(name: str, column: Any, errors: Any) -> str:
    if column is None and COLUMNS[name].optional:
        return ""
    if not COLUMNS[name].holds(column):
        return f"its {name} are not what they should be"
    if isinstance(errors, list) and len(column) != len(errors) and (column or name != "ids"):
        return f"it has {len(errors)} errors for {len(column)} {name}"
    return ""
