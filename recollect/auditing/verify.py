"""Verify a saved audit: hashes of its files, and every rate computed once more from the per-image errors."""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.auditing.headline import recovered_count
from recollect.auditing.manifest import MANIFEST, changed_files, read_manifest
from recollect.auditing.result import Audit
from recollect.auditing.statistics import TABLES
from recollect.auditing.store import write_csv
from recollect.auditing.verdict import Judged, judged_thresholds
from recollect.errors import InputError
from recollect.records import plain
from recollect.report.read import read_audit

ROUNDING = 1e-9  # relative: logarithms and sums differ in their last bits from processor to processor


@dataclass(frozen=True)
class Verification:
    """What was checked, and every problem as a sentence."""

    files: int
    cells: int
    problems: list[str]

    @property
    def passed(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        if self.problems:
            return "\n".join(["Not verified:", *(f"- {problem}" for problem in self.problems)])
        return (
            f"Verified: {self.files} files have the hashes of {MANIFEST}, and every rate follows from the errors of "
            f"{self.cells} cells."
        )


def verify_audit(folder: str | Path) -> Verification:
    """Check a folder; what cannot be read is a problem, and a folder without an audit is an InputError."""
    folder = Path(folder)
    if not (folder / "audit.json").exists():
        raise InputError(f"There is no audit in {folder}: audit.json is missing.")
    problems, cells = list(_changed(folder)), 0
    try:
        saved = read_audit(folder, pictures=False)
        audit, cells = Audit.of(saved), len(saved.records)
        problems += _differences(audit, dict(saved.facts), folder)
    except (InputError, KeyError, TypeError) as error:
        problems.append(f"The records cannot be read: {error}")
    return Verification(_count_files(folder), cells, problems)


def _changed(folder: Path) -> Iterator[str]:
    try:
        yield from changed_files(folder)
    except InputError as error:
        yield str(error)


def _count_files(folder: Path) -> int:
    try:
        return len(read_manifest(folder))
    except InputError:
        return 0


def _differences(audit: Audit, facts: dict[str, Any], folder: Path) -> Iterator[str]:
    computed = plain(audit.to_dict())
    for name in (*TABLES, "finding", "canaries", "verdict"):
        if not _same(computed[name], facts.get(name)):
            yield f"The {name} in audit.json is not the one that the records give."
    if not _says_the_numbers(audit):
        yield "The headline does not say what the records give."
    yield from _verdict(audit)
    with tempfile.TemporaryDirectory() as temporary:
        again = Path(temporary) / "images.csv"
        write_csv(again, audit.records)
        if not _same_tables(again, folder / "images.csv"):
            yield "images.csv does not hold the errors of the records."


def _same_tables(computed: Path, saved: Path) -> bool:
    """Compare tables line by line; only lines that differ are parsed, for they may differ by rounding."""
    try:
        lines = [path.read_text("utf-8").splitlines() for path in (computed, saved)]
    except (OSError, UnicodeDecodeError):  # a file that is missing or no text
        return False
    if len(lines[0]) != len(lines[1]):
        return False
    different = [pair for pair in zip(*lines, strict=True) if pair[0] != pair[1]]
    return all(_same(_numbers(ours), _numbers(theirs)) for ours, theirs in different)


def _numbers(line: str) -> list[Any]:
    return [_number(value) for row in csv.reader([line]) for value in row]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _same(computed: Any, saved: Any) -> bool:
    """Return whether two JSON values are equal, but for the rounding of numbers."""
    if isinstance(computed, dict):
        return (
            isinstance(saved, dict)
            and computed.keys() == saved.keys()
            and all(_same(value, saved[name]) for name, value in computed.items())
        )
    if isinstance(computed, list):
        return isinstance(saved, list) and len(computed) == len(saved) and all(map(_same, computed, saved))
    if isinstance(computed, float) and isinstance(saved, (int, float)):
        return math.isclose(computed, saved, rel_tol=ROUNDING, abs_tol=ROUNDING * ROUNDING)
    return bool(computed == saved)


def _says_the_numbers(audit: Audit) -> bool:
    """Return whether the headline names what the records give of both sets."""
    control = audit.finding.control
    unseen = f" it never saw: {control.count}." if control else ""
    return recovered_count(audit.finding, audit.kind) in audit.headline and unseen in audit.headline


def _verdict(audit: Audit) -> Iterator[str]:
    """Compute value and bound again, and whether they allow the outcome at every threshold that a gate judges."""
    verdict = audit.verdict
    if verdict is None:
        return
    repeated = len(audit.facts["train"]["repeated"])
    own, *stricter = (Judged.of(audit, threshold, repeated) for threshold in judged_thresholds(verdict.threshold))
    if (own.value, own.bound) != (verdict.value, verdict.bound):
        yield "The value and the bound of the verdict are not those that the records give."
    failed = max(judged.value for judged in (own, *stricter)) > verdict.limit
    may_pass = max(judged.bound for judged in (own, *stricter)) <= verdict.limit
    if failed != (verdict.outcome == "failed") or (verdict.outcome == "passed" and not may_pass):
        yield f"The records do not allow the verdict {verdict.outcome}."
