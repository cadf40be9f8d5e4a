"""The pictures of the rounds: estimates and masks as they came about, as sheets of frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.report.read import Audit
from recollect.report.sprites import Sheets, masks, pictures
from recollect.report.views import Results

ROUNDS_BYTES = 3_000_000


def rounds_of(audit: Audit, results: Results, sheets: Sheets) -> dict[str, Any] | None:
    """The estimates and masks round by round, as sheets of frames."""
    arrays = audit.traces
    images = sorted((name.removeprefix("original/") for name in arrays if name.startswith("original/")), key=_natural)
    methods = [m for m in results.methods if any(f"estimate/{m}/{j}" in arrays for j in images)]
    if not images or not methods:
        return None
    strips = len(images) * len(methods)
    most = max(8, _frames_that_fit(audit) // strips)
    height, width = arrays[f"original/{images[0]}"].shape[:2]
    return {
        "height": height,
        "width": width,
        "mask": audit.facts.get("trace_mask"),
        "methods": methods,
        "images": [_image_rounds(audit, results, j, methods, most, sheets) for j in images],
    }


def _image_rounds(
    audit: Audit, results: Results, j: str, methods: list[str], most: int, sheets: Sheets
) -> dict[str, Any]:
    strips = []
    for method in methods:
        estimates = audit.traces.get(f"estimate/{method}/{j}")
        if estimates is None or not len(estimates):
            continue
        kept = _kept_rounds(len(estimates), most)
        found = audit.traces.get(f"mask/{method}/{j}")
        strip: dict[str, Any] = {"method": method, "last": len(estimates), "rounds": [k + 1 for k in kept]}
        strip["total"] = _rounds_taken(audit, results, method, j) or len(estimates)
        strip["estimate"] = sheets.add(pictures(estimates[kept]))
        strip["mask"] = None if found is None else sheets.add(masks(found[kept]))
        strips.append(strip)
    stills = {k: audit.traces.get(f"{k}/{j}") for k in ("original", "degraded")}
    sheet = {k: None if a is None else sheets.add(pictures(a[None])) for k, a in stills.items()}
    return {"name": _name(results, j), **sheet, "strips": strips}


def _rounds_taken(audit: Audit, results: Results, method: str, j: str) -> int | None:
    """How many rounds the method took by its record; the trace may hold only the first ones."""
    place = ("train", str(audit.facts.get("trace_mask")), method)
    record = results.record(results.views[0], place)
    return record.rounds[int(j)] if record and j.isdigit() and int(j) < len(record.rounds) else None


def _name(results: Results, j: str) -> str:
    """The image's id, where the trace is named by its position in the training set."""
    ids = next((r.ids for r in results.records if r.cell["set"] == "train"), [])
    return ids[int(j)] if j.isdigit() and int(j) < len(ids) else j


def _kept_rounds(count: int, most: int) -> list[int]:
    """All rounds, or where they are too many the first ones densely and later ones ever more sparsely."""
    if count <= most:
        return list(range(count))
    return sorted({round(x) - 1 for x in np.geomspace(1, count, most)})


def _frames_that_fit(audit: Audit) -> int:
    """How many rounds the budget holds in all, taking PNG to save nothing."""
    frames = sum(len(a) for name, a in audit.traces.items() if name.startswith("estimate/"))
    return int(ROUNDS_BYTES * frames / sum(a.nbytes for a in audit.traces.values()))


def _natural(name: str) -> tuple[int, str]:
    return (int(name) if name.isdigit() else 10**9, name)
