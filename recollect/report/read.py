"""Read an audit's folder: audit.json, the records of its cells, pictures and rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recollect.errors import InputError, is_whole
from recollect.palette import assign_colours
from recollect.records import AUDIT_FORMAT, SET_LABELS, Record, load_arrays, read_record, read_sealed
from recollect.scoring import APPROXIMATE


class Cell(NamedTuple):
    """One method on one set of images under one mask."""

    set: str
    mask: str
    method: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cell:
        return cls(str(row["set"]), str(row["mask"]), str(row["method"]))


@dataclass(frozen=True)
class MethodFacts:
    """What the audit recorded of a method."""

    name: str
    summary: str
    label: str
    colour: str  # a name in recollect.palette
    knows_truth: bool
    sees_model: bool

    @property
    def is_attack(self) -> bool:
        """Whether an attacker could run it on this model; the others are references."""
        return self.sees_model and not self.knows_truth


@dataclass(frozen=True, eq=False)
class SavedAudit:
    """An audit's folder in memory. Without pictures or rounds the report leaves those sections out."""

    facts: Mapping[str, Any]  # audit.json
    records: list[Record]  # in the audit's order
    samples: Mapping[str, np.ndarray] = field(default_factory=dict)
    traces: Mapping[str, np.ndarray] = field(default_factory=dict)

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return a list of rows in audit.json; empty where it is absent or null."""
        return self.facts.get(name) or []

    def block(self, name: str) -> dict[str, Any]:
        """Return named facts in audit.json; empty where they are absent or null."""
        return self.facts.get(name) or {}

    @property
    def kind(self) -> str:
        """What the sets hold: images, signals or rows."""
        return str(self.block("train").get("kind", "images"))

    @property
    def threshold(self) -> float:
        """The error below which the headline counts an image as recovered."""
        return self.block("finding").get("threshold", {}).get("mse", APPROXIMATE)

    def method_facts(self) -> dict[str, MethodFacts]:
        """Describe the methods of the records, in the order of audit.json."""
        recorded = self.block("methods")
        used = {Cell.of(record.cell).method: None for record in self.records}  # a dict keeps the order of the records
        names = [name for name in recorded if name in used]
        names += [name for name in used if name not in recorded]
        colours = assign_colours([recorded.get(name, {}).get("colour") for name in names])
        return {
            name: _method_facts(name, recorded.get(name, {}), colour)
            for name, colour in zip(names, colours, strict=True)
        }


def read_audit(folder: str | Path, *, pictures: bool = True) -> SavedAudit:
    """Read a folder; what only counts errors needs no pictures."""
    folder = Path(folder)
    facts = read_sealed(folder / "audit.json", AUDIT_FORMAT, "an audit")
    images = max(_images_of(facts, name) for name in SET_LABELS)
    records = [read_record(folder / "cells" / f"{key}.json", images) for key in facts.get("cells") or []]
    if not records:
        raise InputError(
            f"{folder / 'cells'} holds no record of this audit, so there is nothing to report; run the audit again."
        )
    _check(records)
    if not pictures:
        return SavedAudit(facts, records)
    return SavedAudit(facts, records, _arrays(folder / "samples.npz"), _arrays(folder / "traces.npz"))


def _images_of(facts: Mapping[str, Any], set_name: str) -> int:
    """Return how many images of a set audit.json states; 0 where it does not."""
    stated = facts.get(set_name)
    count = stated.get("images", 0) if isinstance(stated, dict) else 0
    return int(count) if is_whole(count) else 0


def disagreements(audit: SavedAudit) -> Iterator[str]:
    """Say where the summary in audit.json and the records differ: such files are of two audits."""
    records = {Cell.of(record.cell): record for record in audit.records}
    for row in audit.table("summary"):
        cell = Cell.of(row)
        where = f"{cell.method} on {cell.set} images, mask {cell.mask}"
        record = records.get(cell)
        if record is None:
            yield f"The summary has a row for {where}, but there is no such record."
            continue
        for name, rate in (("accurate", record.score.accurate), ("approximate", record.score.approximate)):
            if row[name]["count"] != rate.count or row[name]["total"] != rate.total:
                yield f"The summary's {name} recoveries of {where} are not those of the records ({rate.count})."


def _method_facts(name: str, recorded: Mapping[str, Any], colour: str) -> MethodFacts:
    return MethodFacts(
        name,
        summary=recorded.get("summary", ""),
        label=recorded.get("label") or name,
        colour=colour,
        knows_truth=recorded.get("knows_truth", False),
        sees_model=recorded.get("sees_model", True),
    )


def _check(records: Sequence[Record]) -> None:
    for record in records:
        _check_record(record)
    for cell, count in Counter(Cell.of(record.cell) for record in records).items():
        if count > 1:
            raise InputError(
                f"The audit lists {count} records of {cell.method} on {cell.set} images under the mask {cell.mask}, "
                "and a report shows one; run the audit again."
            )


def _check_record(record: Record) -> None:
    missing = set(Cell._fields) - set(record.cell)
    if missing:
        raise InputError(f"The record {record.key} does not say its {', '.join(sorted(missing))}; run the audit again.")
    if record.cell["set"] not in SET_LABELS:
        sets = " and ".join(SET_LABELS)
        raise InputError(f"The record {record.key} is of the set {record.cell['set']!r}; an audit has the sets {sets}.")
    if not record.mse or len(record.mse) != len(record.ids):
        raise InputError(
            f"The record {record.key} has {len(record.mse)} errors for {len(record.ids)} images; run the audit again."
        )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    return load_arrays(path) if path.exists() else {}
