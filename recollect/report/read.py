"""What a report is made from: the folder of an audit, read and checked."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import InputError
from recollect.records import AUDIT_FORMAT, Record, read_json, read_records
from recollect.scoring import Rate


@dataclass(frozen=True, eq=False)
class Audit:
    """An audit's folder in memory; only the records have to be there, all else may be absent."""

    facts: Mapping[str, Any]  # audit.json
    records: list[Record]
    samples: Mapping[str, np.ndarray]
    traces: Mapping[str, np.ndarray]

    def table(self, name: str) -> list[dict[str, Any]]:
        """A list of rows in audit.json; empty where it is absent or null."""
        return self.facts.get(name) or []

    def block(self, name: str) -> dict[str, Any]:
        """Named facts in audit.json; empty where they are absent or null."""
        return self.facts.get(name) or {}


def read_audit(folder: str | Path) -> Audit:
    folder = Path(folder)
    facts = read_json(folder / "audit.json")
    if not isinstance(facts, dict) or facts.get("format") != AUDIT_FORMAT:
        raise InputError(f"{folder / 'audit.json'} is not an audit that this version of recollect can read.")
    records = _current(read_records(folder / "cells"), facts)
    if not records:
        raise InputError(f"{folder / 'cells'} holds no records; there is nothing to report on.")
    for record in records:
        _check(record)
    return Audit(facts, records, _arrays(folder / "samples.npz"), _arrays(folder / "traces.npz"))


def disagreements(audit: Audit) -> Iterator[str]:
    """Where audit.json says another count than the records do, in sentences: the files are then of two runs."""
    cells = {_place(record.cell): record for record in audit.records}
    if len(cells) < len(audit.records):
        return  # several checkpoints: the summary does not say which one it means
    for row in audit.table("summary"):
        record = cells.get(_place(row))
        where = f"{row.get('method')} on {row.get('set')} images, mask {row.get('mask')}"
        if record is None:
            yield f"The summary has a row for {where}, but there is no such record."
            continue
        counted = {"accurate": record.score.accurate, "approximate": record.score.approximate}
        for name, rate in counted.items():
            if _count(row.get(name)) not in (None, rate):
                yield f"The summary's {name} recoveries of {where} are not those of the records ({rate.count})."


def _current(records: list[Record], facts: Mapping[str, Any]) -> list[Record]:
    """The records of this audit: a folder used again with other settings still holds those of earlier runs."""
    listed = facts.get("cells")
    if listed:
        return [record for record in records if record.key in listed]
    means = {_place(row): row.get("mean_psnr") for row in facts.get("summary") or []}
    chosen: dict[str, Record] = {}
    for record in records:
        name = str(sorted(record.cell.items(), key=str))
        if name not in chosen or _mean_is(record, means.get(_place(record.cell))):
            chosen[name] = record
    return list(chosen.values())


def _mean_is(record: Record, mean: float | None) -> bool:
    psnr = record.score.psnr
    finite = psnr[psnr.isfinite()]
    return mean is not None and len(finite) > 0 and abs(float(finite.mean()) - mean) < 1e-9


def _check(record: Record) -> None:
    missing = {"set", "mask", "method"} - set(record.cell)
    if missing:
        raise InputError(f"The record {record.key} does not say its {', '.join(sorted(missing))}.")
    if not record.mse or len(record.mse) != len(record.ids):
        raise InputError(f"The record {record.key} has {len(record.mse)} errors for {len(record.ids)} images.")


def _place(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return cell.get("set"), cell.get("mask"), cell.get("method")


def _count(row: Mapping[str, Any] | None) -> Rate | None:
    return Rate(row["count"], row["total"]) if row else None


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        return {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as packed:
            return {name: packed[name] for name in packed.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
