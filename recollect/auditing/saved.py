"""Read a saved audit back: the same object that `recollect.audit` gave."""

from __future__ import annotations

from pathlib import Path

from recollect.auditing.canary_finding import Coins, find_canaries
from recollect.auditing.checks import Check
from recollect.auditing.headline import find
from recollect.auditing.result import OWN_FACTS, Audit
from recollect.auditing.statistics import Statistics
from recollect.auditing.store import Store
from recollect.auditing.thresholds import Threshold
from recollect.auditing.verdict import Verdict
from recollect.records import load_arrays
from recollect.report.read import SavedAudit, read_audit


def load_audit(folder: str | Path) -> Audit:
    """Read an audit's folder; it may be read-only. Numbers are computed from its records."""
    folder = Path(folder)
    saved = read_audit(folder)
    facts = saved.facts
    statistics = Statistics(saved.records, facts["main_method"], counted=facts["finding"]["methods"])
    threshold = Threshold(**facts["finding"]["threshold"])
    canaries = find_canaries(statistics, Coins.of(facts["canaries"]), threshold) if facts.get("canaries") else None
    return Audit(
        statistics.records,
        statistics.main_method,
        counted=statistics.counted,
        headline=facts["headline"],
        finding=find(statistics, threshold),
        canaries=canaries,
        verdict=Verdict.of(facts["verdict"]) if facts["verdict"] else None,
        attribution=facts["attribution"],
        checks=[Check(**check) for check in facts["checks"]],
        facts={name: value for name, value in facts.items() if name not in OWN_FACTS},
        store=_pictures(folder, saved),
        title=facts["title"],
        command=facts["command"],
        attractors=facts["attractors"],
        trace_mask=facts["trace_mask"],
    )


def _pictures(folder: Path, saved: SavedAudit) -> Store:
    """Hold the pictures in memory, so that the audit can be saved elsewhere."""
    store = Store(None, with_pictures=saved.block("settings").get("pictures", True))
    for record in saved.records:
        path = folder / "cells" / f"{record.key}.npz"
        store.add(record, load_arrays(path) if path.exists() else {})
    store.pictures |= saved.samples
    store.traces |= saved.traces
    return store
