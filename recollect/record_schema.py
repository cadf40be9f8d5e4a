"""What a record has to hold: read from disk, it may have been edited."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from recollect.errors import is_number, is_whole


def _is_error(value: Any) -> bool:
    return value is None or (is_number(value) and 0 <= value < math.inf)  # null: the estimate was not finite


def _is_share(value: Any) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_id(value: Any) -> bool:
    return value is None or isinstance(value, str)  # null: the estimate was not finite


def _is_position(value: Any) -> bool:
    return value is None or is_whole(value)


COLUMNS: Mapping[str, Callable[[Any], bool]] = {
    "ids": _is_text, "mse": _is_error, "rounds": is_whole, "steps": is_whole, "stop": _is_text,
    "mask_accuracy": _is_share, "mask_iou": _is_share, "nearest": _is_id, "nearest_index": _is_position,
    "nearest_mse": _is_error,
}  # fmt: skip
OPTIONAL = {"mask_accuracy", "mask_iou", "nearest", "nearest_index", "nearest_mse"}


def problem_of(data: Mapping[str, Any]) -> str:
    """Say what is wrong with the values of a record; nothing if all is well."""
    for name in ("cell", "settings", "provenance"):
        if not isinstance(data[name], dict):
            return f"its {name} is no list of named values"
    if not is_number(data["seconds"]) or not 0 <= data["seconds"] < math.inf:
        return "its seconds are no time"
    if not (data["pictures_hash"] is None or _is_text(data["pictures_hash"])):
        return "its pictures_hash is no text"
    problems = (_column_problem(name, data[name], data["mse"]) for name in COLUMNS)
    return next(filter(None, problems), "")


def _column_problem(name: str, column: Any, errors: Any) -> str:
    if column is None and name in OPTIONAL:
        return ""
    if not isinstance(column, list) or not all(map(COLUMNS[name], column)):
        return f"its {name} are not what they should be"
    if isinstance(errors, list) and len(column) != len(errors) and (column or name != "ids"):
        return f"it has {len(errors)} errors for {len(column)} {name}"
    return ""
