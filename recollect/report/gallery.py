"""The pictures of the gallery, fitted into a budget of bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from recollect.records import Record
from recollect.report.read import Audit
from recollect.report.sprites import Maker, Sheets, errors, masks, pictures
from recollect.report.views import Results, View

GALLERY_BYTES = 11_000_000  # of PNG; base64 adds a third, and the page has to stay under 25 MB
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
    given = str(audit.facts.get("sampling") or "evenly spaced over each set")
    words = f"Pictures are shown of {' and '.join(parts)}: {given.rstrip('.')}"
    if gallery["step"] > 1:
        words += f", of which one in {gallery['step']} is here, to keep this file small enough to mail"
    return f"{words}. Rates count every image, shown or not."


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
                if record.mask_iou is None:  # told the mask, or indifferent to it: nothing was found
                    sheet["found"] = None
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
    columns: dict[str, Any] = {
        "rounds": record.rounds,
        "stop": record.stop,
        "accuracy": record.mask_accuracy,
        "iou": record.mask_iou,
    }
    return {name: [values[i] for i in index] if values else None for name, values in columns.items()}


def _set_words(name: str) -> str:
    return {"train": "training"}.get(name, name)
