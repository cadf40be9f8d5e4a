"""The records of one training, or of one set of images: a file of JSON lines, the training first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.errors import InputError
from recollect.record_lines import LINES, read_lines, record_line, record_of_line, sealed_line, write_lines
from recollect.records import Record, unsealed

TRAINING_FORMAT = "recollect-paper-training-1"


@dataclass(frozen=True)
class RecordFile:
    """What a file holds; one record for each cell, whatever settings it was measured with."""

    training: Mapping[str, Any] | None = None
    records: Mapping[str, Record] = field(default_factory=dict)  # by their keys

    @classmethod
    def read(cls, path: Path) -> RecordFile:
        """Read a file; nothing if it does not exist."""
        training, records = None, {}
        for content, where in read_lines(path) if path.exists() else ():
            try:
                if content.get("format") == TRAINING_FORMAT:
                    training = checked_training(content, path.stem, where)
                else:
                    record = record_of_line(content, where)
                    records[record.key] = record
            except InputError as error:
                raise InputError(
                    f"{str(error).removesuffix('.')}; remove the line, and it is measured again."
                ) from None
        return cls(training, records)

    def write(self, path: Path) -> None:
        """Write the training, then its cells in the order of their keys; a file without either is removed."""
        lines = [] if self.training is None else [sealed_line(TRAINING_FORMAT, self.training)]
        lines += [record_line(self.records[key]) for key in sorted(self.records)]
        if lines:
            write_lines(path, lines)
        else:
            path.unlink(missing_ok=True)

    def with_records(self, new: Iterable[Record]) -> RecordFile:
        """Add records; they replace those of the same cells that were measured with other settings."""
        added = {record.key: record for record in new}
        names = {cell_name(record.cell) for record in added.values()}
        kept = {key: record for key, record in self.records.items() if cell_name(record.cell) not in names}
        return replace(self, records=kept | added)

    def without(self, keys: Iterable[str]) -> RecordFile:
        removed = set(keys)
        return replace(self, records={key: record for key, record in self.records.items() if key not in removed})

    @cached_property
    def by_name(self) -> dict[str, Record]:
        """The records by the names of their cells; their settings may be others than today's."""
        return {cell_name(record.cell): record for record in self.records.values()}


def checked_training(content: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Read the record of a training; one of another training is refused."""
    facts = unsealed(content, TRAINING_FORMAT, "a record of a training", where)
    if facts.get("training") != name:
        raise InputError(f"{where} is the record of another training, {facts.get('training')}.")
    return facts


def cell_name(cell: Mapping[str, Any]) -> str:
    """Name a cell without its settings."""
    return json.dumps(cell, sort_keys=True, default=str)


def file_name(cell: Mapping[str, Any]) -> str:
    """Name the file of a cell: a method that sees no network belongs to a set of images."""
    return f"{cell.get('training') or cell['images']}{LINES}"
