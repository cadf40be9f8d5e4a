"""The pictures of the rounds: how estimates and masks change, as sheets of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recollect.report.read import Cell, SavedAudit
from recollect.report.results import Results
from recollect.report.sprites import Sheets, masks, pictures

ROUNDS_BYTES = 3_000_000
FEWEST_FRAMES = 8


def build_rounds(audit: SavedAudit, results: Results, sheets: Sheets) -> dict[str, Any] | None:
    """Return what the script needs to show estimates and masks round by round."""
    traces = audit.traces
    images = sorted(int(name.removeprefix("original/")) for name in traces if name.startswith("original/"))
    methods = [method for method in results.methods if any(f"round/{method}/{image}" in traces for image in images)]
    if not images or not methods:
        return None
    most = max(FEWEST_FRAMES, _frames_in_budget(traces) // (len(images) * len(methods)))
    height, width = traces[f"original/{images[0]}"].shape[:2]
    return {
        "height": height,
        "width": width,
        "mask": audit.facts["trace_mask"],
        "images": [_image(audit, results, image, methods, most, sheets) for image in images],
    }


def kept_rounds(count: int, most: int) -> list[int]:
    """Choose the rounds to show: all, or if there are too many the early ones densely and later ones sparsely."""
    if count <= most:
        return list(range(count))
    return sorted({round(number) - 1 for number in np.geomspace(1, count, most)})


def _image(
    audit: SavedAudit, results: Results, image: int, methods: list[str], most: int, sheets: Sheets
) -> dict[str, Any]:
    """Describe one traced image; `image` is its position in the training set."""
    training_ids = next(record.ids for record in results.records if record.cell["set"] == "train")
    strips = [_strip(audit, results, image, method, most, sheets) for method in methods]
    return {
        "name": training_ids[image],
        "original": sheets.add(pictures(audit.traces[f"original/{image}"][None])),
        "degraded": sheets.add(pictures(audit.traces[f"degraded/{image}"][None])),
        "strips": [strip for strip in strips if strip is not None],
    }


def _strip(
    audit: SavedAudit, results: Results, image: int, method: str, most: int, sheets: Sheets
) -> dict[str, Any] | None:
    """Return the frames of one method on one image; None if it was not traced."""
    estimates = audit.traces.get(f"estimate/{method}/{image}")
    numbers, errors = (audit.traces.get(f"{kind}/{method}/{image}") for kind in ("round", "mse"))
    if estimates is None or numbers is None or errors is None:
        return None
    kept = kept_rounds(len(estimates), most)
    strip: dict[str, Any] = {"method": method, "mask": None}
    strip |= {"rounds": numbers[kept].tolist(), "errors": errors[kept].tolist()}
    strip["stop"] = _why_it_stopped(audit, results, method, image)
    strip["estimate"] = sheets.add(pictures(estimates[kept]))
    mask_estimates = audit.traces.get(f"mask/{method}/{image}")
    if mask_estimates is not None:
        strip["mask"] = sheets.add(masks(mask_estimates[kept]))
    return strip


def _why_it_stopped(audit: SavedAudit, results: Results, method: str, image: int) -> str:
    record = results.record(Cell("train", audit.facts["trace_mask"], method))
    return record.stop[image] if record is not None else ""


def _frames_in_budget(traces: Mapping[str, np.ndarray]) -> int:
    """Estimate how many frames the budget holds, as if PNG saved nothing."""
    frames = sum(len(array) for name, array in traces.items() if name.startswith("estimate/"))
    return int(ROUNDS_BYTES * frames / sum(array.nbytes for array in traces.values()))
