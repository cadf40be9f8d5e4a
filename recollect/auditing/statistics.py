"""An audit as rows: for pandas, for images.csv, and for the lists in audit.json."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from recollect.auditing.membership import membership
from recollect.auditing.rates import rate_facts
from recollect.records import Record
from recollect.scoring import ACCURATE, APPROXIMATE

if TYPE_CHECKING:
    from recollect.auditing.result import Audit

THRESHOLDS = {"accurate": ACCURATE, "approximate": APPROXIMATE}


def image_columns(record: Record) -> dict[str, list[Any]]:
    """A cell as columns, one row an image."""
    count, score = len(record.ids), record.score
    unknown: list[Any] = [None] * count
    return {
        **{name: [value] * count for name, value in record.cell.items()},
        "image": list(record.ids), "mse": score.mse.tolist(), "psnr": score.psnr.tolist(),
        "accurate": (score.mse < ACCURATE).tolist(), "approximate": (score.mse < APPROXIMATE).tolist(),
        "rounds": list(record.rounds), "steps": list(record.steps), "stop": list(record.stop),
        "mask_accuracy": list(record.mask_accuracy or unknown), "mask_iou": list(record.mask_iou or unknown),
    }  # fmt: skip


def write_csv(file: Path, records: Sequence[Record]) -> None:
    """The per-image table; what is unknown or not finite is left empty."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        for number, record in enumerate(records):
            columns = image_columns(record)
            if number == 0:
                writer.writerow(columns)
            writer.writerows([_plain(v) for v in row] for row in zip(*columns.values(), strict=True))


def summary_rows(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """One row a cell: its rates and means."""
    for record in records:
        score = record.score
        finite = score.psnr[torch.isfinite(score.psnr)]
        yield {
            **record.cell, "images": len(record.ids), "accurate": rate_facts(score.accurate),
            "approximate": rate_facts(score.approximate), "mean_psnr": float(finite.mean()) if len(finite) else None,
            "mask_accuracy": _mean(record.mask_accuracy), "mask_iou": _mean(record.mask_iou), "seconds": record.seconds,
        }  # fmt: skip


def overall_rows(audit: Audit) -> Iterator[dict[str, Any]]:
    """Over all masks: the share of all tries, and of images that at least one mask gave back."""
    for method in audit.methods:
        for set_name in audit.sets:
            for over in audit.overall:
                rates = {n: rate_facts(audit.rate(set_name, over, method, t)) for n, t in THRESHOLDS.items()}
                yield {"set": set_name, "method": method, "over": over, **rates}


def excess_rows(audit: Audit) -> Iterator[dict[str, Any]]:
    """Train over control, for each mask and overall."""
    for method in audit.methods:
        for mask in [*audit.masks, *audit.overall] if audit.has_control else []:
            found = {n: audit.excess(method, t, mask) for n, t in THRESHOLDS.items()}
            yield {"mask": mask, "method": method, **{n: asdict(e) for n, e in found.items() if e}}


def membership_rows(audit: Audit) -> Iterator[dict[str, Any]]:
    """How well the error tells training from control images; "any mask" takes an image's smallest error."""
    for method in audit.methods:
        for mask in [*audit.masks, audit.overall[-1]] if audit.has_control else []:
            errors = [audit.score(set_name, mask, method).mse.tolist() for set_name in ("train", "control")]
            yield {"mask": mask, "method": method, **asdict(membership(*errors))}


def _plain(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
