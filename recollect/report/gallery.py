"""The pictures of the gallery and of the rounds, fitted into a budget of bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from recollect.records import Record
from recollect.report.reading import Audit
from recollect.report.sheets import Maker, Sheets, errors, masks, pictures
from recollect.report.views import Results, View

GALLERY_BYTES = 11_000_000  # of PNG; base64 adds a third, and the page has to stay under 25 MB
ROUNDS_BYTES = 3_000_000
_KINDS: dict[str, Maker] = {"estimate": pictures, "error": errors, "mask": masks}
_SHEET = {"estimate": "estimate", "error": "error", "mask": "found"}  # in the script `mask` is the mask's name
_PROBE = 24  # pictures encoded to learn what all would take


def gallery_of(audit: Audit, results: Results, sheets: Sheets) -> dict[str, Any] | None:
    """What the script needs to draw the gallery: sheets, and the outcome of each picture's image."""
    view = results.views[0]  # of several checkpoints the one with the smallest train loss
    arrays = {name: (tiles, make) for name, tiles, make in _sheets_wanted(audit, results)}
    sets = [s for s in results.sets if f"original/{s}" in arrays]
    if not sets:
        return None
    step = _step(arrays)
    numbers = {name: sheets.add(make(tiles[::step])) for name, (tiles, make) in arrays.items()}
    height, width = arrays[f"original/{sets[0]}"][0].shape[1:3]
    return {
        "height": height,
        "width": width,
        "view": view.label if len(results.views) > 1 else None,
        "step": step,
        "sets": [_set(audit, results, view, s, numbers, step) for s in sets],
        "masks": results.masks,
        "methods": results.methods,
    }


def sampling_words(audit: Audit, gallery: dict[str, Any]) -> str:
    """The rule by which the images of the gallery were picked, in a sentence."""
    parts = [f"{len(s['index'])} of {s['total']} {_set_words(s['name'])} images" for s in gallery["sets"]]
    given = str(audit.facts.get("sampling") or "the audit kept these, spread over each set")
    words = f"Pictures are shown of {' and '.join(parts)}: {given.rstrip('.')}"
    if gallery["step"] > 1:
        words += f", of which every {gallery['step']}th is here, to keep this file small enough to mail"
    return f"{words}. Rates count every image, shown or not."


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


def _sheets_wanted(audit: Audit, results: Results) -> Iterator[tuple[str, np.ndarray, Maker]]:
    """Names are built from the records' own, never taken apart: a mask's name may be a path with slashes."""
    names: list[tuple[str, Maker]] = []
    for s in results.sets:
        names.append((f"original/{s}", pictures))
        for mask in results.masks:
            names.append((f"degraded/{s}/{mask}", pictures))
            names += [(f"{k}/{s}/{mask}/{m}", make) for m in results.methods for k, make in _KINDS.items()]
    yield from ((name, audit.samples[name], make) for name, make in names if name in audit.samples)


def _step(arrays: dict[str, tuple[np.ndarray, Maker]]) -> int:
    """Show every how-manieth picture, so that all sheets fit the budget; judged from a few of each."""
    expected = 0.0
    for tiles, make in arrays.values():
        some = tiles[:: max(1, len(tiles) // _PROBE)]
        expected += len(make(some).png) * len(tiles) / len(some)
    return max(1, math.ceil(expected / GALLERY_BYTES))


def _set(audit: Audit, results: Results, view: View, name: str, numbers: dict[str, int], step: int) -> dict[str, Any]:
    index = audit.samples.get(f"index/{name}", np.arange(len(audit.samples[f"original/{name}"])))[::step].tolist()
    cells = []
    for mask in results.masks:
        for method in results.methods:
            record = results.record(view, (name, mask, method))
            if record is not None:
                sheet = {_SHEET[k]: numbers.get(f"{k}/{name}/{mask}/{method}") for k in _KINDS}
                outcome = _outcome(record, index)
                pool = view.pools[name, mask, method]
                cells.append({"mask": mask, "method": method, "pool": pool, **sheet, **outcome})
    ids = next((r.ids for m in results.methods for k in results.masks if (r := results.record(view, (name, k, m)))), [])
    return {
        "name": name,
        "total": len(ids),
        "index": index,
        "ids": [ids[i] for i in index],
        "original": numbers[f"original/{name}"],
        "degraded": {mask: numbers.get(f"degraded/{name}/{mask}") for mask in results.masks},
        "cells": cells,
    }


def _outcome(record: Record, index: list[int]) -> dict[str, Any]:
    columns = {"rounds": record.rounds, "stop": record.stop, "accuracy": record.mask_accuracy, "iou": record.mask_iou}
    return {name: [values[i] for i in index] if values else None for name, values in columns.items()}


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
        strip = {"method": method, "last": len(estimates), "rounds": [k + 1 for k in kept]}
        strip["estimate"] = sheets.add(pictures(estimates[kept]))
        strip["mask"] = None if found is None else sheets.add(masks(found[kept]))
        strips.append(strip)
    stills = {k: audit.traces.get(f"{k}/{j}") for k in ("original", "degraded")}
    sheet = {k: None if a is None else sheets.add(pictures(a[None])) for k, a in stills.items()}
    return {"name": _name(results, j), **sheet, "strips": strips}


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


def _set_words(name: str) -> str:
    return {"train": "training"}.get(name, name)


def _natural(name: str) -> tuple[int, str]:
    return (int(name) if name.isdigit() else 10**9, name)
