"""The pictures of the gallery, within a budget of bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from recollect.records import SET_LABELS, Record
from recollect.report.read import Cell, SavedAudit
from recollect.report.results import Results
from recollect.report.sprites import Draw, Sheets, errors, masks, pictures

GALLERY_BYTES = 11_000_000  # of PNG; base64 adds a third, and the page has to stay under 25 MB
PROBE = 24  # pictures that are encoded to estimate the size of all
PICTURES: dict[str, Draw] = {"estimate": pictures, "log_error": errors, "mask": masks}  # of one method


class Tiles(NamedTuple):
    """Pictures of equal size, and how to draw them."""

    pixels: np.ndarray
    draw: Draw


def build_gallery(
    audit: SavedAudit, results: Results, sheets: Sheets, budget: int = GALLERY_BYTES
) -> dict[str, Any] | None:
    """Return what the script needs to draw the gallery: sheets, and the outcome of each picture's image."""
    tiles = {name: Tiles(audit.samples[name], draw) for name, draw in _names(results) if name in audit.samples}
    sets = [name for name in results.sets if f"original/{name}" in tiles]
    if not sets:
        return None
    step = thinning(tiles, budget)
    numbers = {name: sheets.add(draw(pixels[::step])) for name, (pixels, draw) in tiles.items()}
    height, width = tiles[f"original/{sets[0]}"].pixels.shape[1:3]
    return {
        "noun": audit.kind.removesuffix("s"),
        "height": height,
        "width": width,
        "step": step,
        "sets": [_set(audit, results, name, numbers, step) for name in sets],
        "masks": results.masks,
        "methods": results.methods,
        "opening": main_method(audit, results),
        "returned": _returned(audit, sheets),
    }


def _returned(audit: SavedAudit, sheets: Sheets) -> dict[str, Any] | None:
    """Return the pictures of training images that recoveries of other pictures ended on."""
    if "original/returned" not in audit.samples:
        return None
    sheet = sheets.add(pictures(audit.samples["original/returned"]))
    return {"sheet": sheet, "index": audit.samples["index/returned"].tolist()}


def main_method(audit: SavedAudit, results: Results) -> str:
    """Name the method that the page shows first: the strongest attack."""
    main = audit.facts.get("main_method")
    return main if main in results.methods else results.methods[0]


def thinning(tiles: Mapping[str, Tiles], budget: int) -> int:
    """Return n so that every n-th picture of all sheets fits the budget, judged from a few of each."""
    if sum(pixels.nbytes for pixels, _ in tiles.values()) <= budget:  # as PNG they are smaller
        return 1
    expected = 0.0
    for pixels, draw in tiles.values():
        probe = pixels[:: max(1, len(pixels) // PROBE)]
        expected += len(draw(probe).png) * len(pixels) / len(probe)
    return max(1, math.ceil(expected / budget))


def sampling_sentence(gallery: Mapping[str, Any], kind: str = "images") -> str:
    """Say which images, signals or rows the gallery shows."""
    shown = [f"{len(group['index'])} of {group['total']} {group['label']} {kind}" for group in gallery["sets"]]
    sentence = f"The gallery shows {' and '.join(shown)}, evenly spaced over each set"
    if gallery["step"] > 1:
        sentence += f"; only one in {gallery['step']} of the sample is here, to keep this file small enough to mail"
    return f"{sentence}. Rates count every {kind.removesuffix('s')}, shown or not."


def _names(results: Results) -> Iterator[tuple[str, Draw]]:
    """Build the names of arrays and never take one apart: a mask's name may be a path with slashes."""
    for set_name in results.sets:
        yield f"original/{set_name}", pictures
        for mask in results.masks:
            yield f"degraded/{set_name}/{mask}", pictures
            for method in results.methods:
                for kind, draw in PICTURES.items():
                    yield f"{kind}/{set_name}/{mask}/{method}", draw


def _set(audit: SavedAudit, results: Results, set_name: str, numbers: Mapping[str, int], step: int) -> dict[str, Any]:
    index = audit.samples[f"index/{set_name}"][::step].tolist()
    cells = [Cell(set_name, mask, method) for mask in results.masks for method in results.methods]
    records = {cell: record for cell in cells if (record := results.record(cell))}
    ids = next(iter(records.values())).ids
    return {
        "name": set_name,
        "label": SET_LABELS[set_name],
        "total": len(ids),
        "index": index,
        "ids": [ids[position] for position in index],
        "original": numbers[f"original/{set_name}"],
        "degraded": {mask: numbers.get(f"degraded/{set_name}/{mask}") for mask in results.masks},
        "cells": [_cell(cell, record, results.pools[cell].number, numbers, index) for cell, record in records.items()],
    }


def _cell(cell: Cell, record: Record, pool: int, numbers: Mapping[str, int], index: list[int]) -> dict[str, Any]:
    """Return the sheets of one method's pictures, and how each image ended."""
    sheets = {kind: numbers.get(f"{kind}/{cell.set}/{cell.mask}/{cell.method}") for kind in PICTURES}
    return {
        "mask": cell.mask,
        "method": cell.method,
        "pool": pool,
        "estimate": sheets["estimate"],
        "error": sheets["log_error"],
        # A method that knows the mask, or ignores it, estimated none.
        "estimated_mask": None if record.mask_iou is None else sheets["mask"],
        "rounds": _picked(record.rounds, index),
        "stop": _picked(record.stop, index),
        "accuracy": _picked(record.mask_accuracy, index),
        "iou": _picked(record.mask_iou, index),
        "nearest": _picked(record.nearest, index),
        "nearest_index": _picked(record.nearest_index, index),
        "nearest_mse": _picked(record.nearest_mse, index),
    }


def _picked(values: list[Any] | None, index: list[int]) -> list[Any] | None:
    if not values:
        return None
    return [values[position] for position in index]
