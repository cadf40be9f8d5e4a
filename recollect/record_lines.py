"""Many records in one file: a JSON object a line, each with its own checksum, readable and comparable by any tool."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recollect.errors import InputError, is_whole
from recollect.records import (
    OF_AUDITS,
    OF_SUITE,
    Record,
    atomically,
    parse_json,
    read_text,
    record_from,
    sealed,
    steps_per_round,
    unsealed,
)

LINES = ".jsonl"  # how the name of such a file ends
RECORD_LINE = "recollect-record-line-1"
ABSENT: dict[str, Any] = {"ids": [], "mask_accuracy": None, "mask_iou": None, "pictures_hash": None}
ABSENT |= dict.fromkeys((*OF_AUDITS, *OF_SUITE))  # parts that a line leaves out if they are so
OTHERS = "others"  # the images of a column that have its most frequent value


def record_line(record: Record) -> str:
    """Write a record as a line; columns that repeat themselves are written short."""
    data = {name: value for name, value in asdict(record).items() if name not in ABSENT or value != ABSENT[name]}
    data["stop"] = _by_exception(record.stop)
    if per_round := steps_per_round(record):
        data["steps"] = per_round
    if len(set(record.rounds)) == 1:
        data["rounds"] = record.rounds[0]
    return sealed_line(RECORD_LINE, data)


def record_of_line(content: Mapping[str, Any], where: str) -> Record:
    """Read the record of a line, in full."""
    data = unsealed(content, RECORD_LINE, "a record", where)
    count = len(data["mse"]) if isinstance(data.get("mse"), list) else 0
    if is_whole(data.get("rounds")):
        data["rounds"] = [data["rounds"]] * count
    data["stop"] = _in_full(data.get("stop"), count, where)
    return record_from({**ABSENT, **data}, where)


def sealed_line(line_format: str, data: Mapping[str, Any]) -> str:
    """Write data as one line of JSON with a checksum."""
    return json.dumps(sealed(line_format, data), separators=(",", ":"), allow_nan=False)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, all or none."""
    with atomically(path) as file:
        file.write_text("".join(f"{line}\n" for line in lines))


def read_lines(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Read the object of each line, and how an error names the line."""
    for number, text in enumerate(read_text(path).splitlines(), 1):
        where = f"{path}, line {number},"
        content = parse_json(text, where)
        if not isinstance(content, dict):
            raise InputError(f"{where} is no JSON object.")
        yield content, where


def read_records_of(path: Path) -> list[Record]:
    """Read a file whose lines are all records."""
    return [record_of_line(content, where) for content, where in read_lines(path)]


def _by_exception(column: Sequence[str]) -> dict[str, Any]:
    """Name the most frequent value, and the positions of the others."""
    if not column:
        return {}
    usual = Counter(column).most_common(1)[0][0]
    short: dict[str, Any] = {OTHERS: usual}
    for position, value in enumerate(column):
        if value != usual:
            short.setdefault(value, []).append(position)
    return short


def _in_full(short: Any, count: int, where: str) -> list[str]:
    if not isinstance(short, dict):
        raise InputError(f"{where} is not a record that can be used: it does not say how its images ended.")
    column = [short.get(OTHERS, "")] * count
    for value, positions in short.items():
        for position in positions if value != OTHERS and isinstance(positions, list) else ():
            if not is_whole(position) or position >= count:
                raise InputError(f"{where} is not a record that can be used: it has no image {position!r}.")
            column[position] = value
    return column
