"""What an audit found: in words, as a table, and on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from recollect.auditing.pictures import save_arrays
from recollect.auditing.store import Store
from recollect.checks import Check
from recollect.errors import InputError
from recollect.membership import membership
from recollect.records import Record, atomically, write_json, write_record
from recollect.scoring import ACCURATE, APPROXIMATE, Excess, Rate, Score, excess

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "recollect-audit-1"


@dataclass(frozen=True, eq=False)
class Audit:
    """The outcome of an audit; print it for the headline."""

    records: list[Record]
    title: str
    facts: Mapping[str, Any]
    store: Store
    checks: list[Check]
    attractors: list[dict[str, Any]] | None = None
    trace_mask: str | None = None
    command: str = ""

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(r.cell["method"] for r in self.records))

    @property
    def masks(self) -> list[str]:
        return list(dict.fromkeys(r.cell["mask"] for r in self.records))

    @property
    def has_control(self) -> bool:
        return any(r.cell["set"] == "control" for r in self.records)

    @property
    def main_method(self) -> str:
        """The method that the headline speaks of: the strongest that does not know the mask."""
        return next((m for m in ("refined", "blind", "iterate") if m in self.methods), self.methods[0])

    def record(self, set_name: str, mask: str, method: str) -> Record:
        wanted = {"set": set_name, "mask": mask, "method": method}
        for record in self.records:
            if all(record.cell[k] == v for k, v in wanted.items()):
                return record
        raise InputError(f"This audit has no cell {wanted}; it has masks {self.masks} and methods {self.methods}.")

    def best(self, set_name: str, method: str) -> Score:
        """Per image the smallest error over all masks: what at least one mask gave back."""
        errors = [self.record(set_name, m, method).score.mse.nan_to_num(nan=torch.inf) for m in self.masks]
        return Score(torch.stack(errors).min(0).values)

    def excess(self, method: str | None = None, threshold: float = ACCURATE) -> Excess | None:
        """How far the training rate is above the control rate, over all masks."""
        if not self.has_control:
            return None
        method = method or self.main_method
        return excess(self.best("train", method).rate(threshold), self.best("control", method).rate(threshold))

    @property
    def headline(self) -> str:
        method = self.main_method
        train = self.best("train", method)
        masks = "under at least one of " + f"{len(self.masks)} masks" if len(self.masks) > 1 else "under one mask"
        words = (
            f"{train.accurate.value:.0%} of {train.accurate.total} training images can be read back accurately out of "
            f"this model {masks} ({method}, MSE < {ACCURATE:.0e}; 95% interval {_interval(train.accurate)}), and "
            f"{train.approximate.value:.0%} approximately (MSE < {APPROXIMATE:.0e})."
        )
        if not self.has_control:
            return words + " No control images were given, so nothing shows that this is memory."
        control = self.best("control", method)
        return words + (
            f" Of {control.accurate.total} images it never saw, {control.accurate.value:.0%} and "
            f"{control.approximate.value:.0%}."
        )

    def __str__(self) -> str:
        lines = [self.headline, "", *self._table()]
        worrying = [c for c in self.checks if c.level != "ok"]
        lines += ["", *(f"{c.level}: {c.sentence}" for c in worrying)] if worrying else []
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """Accurate / approximate rates in percent for each set: a row a mask, a column a method."""
        width = max(9, *(len(m) for m in self.methods)) + 3
        first = max(9, *(len(m) for m in self.masks)) + 2
        lines: list[str] = []
        for set_name in self._sets():
            lines.append(f"{set_name:<{first}}" + "".join(f"{m:>{width}}" for m in self.methods))
            for mask in [*self.masks, "any mask"]:
                scores = (self._score(set_name, mask, m) for m in self.methods)
                cells = (f"{100 * s.accurate.value:.0f} / {100 * s.approximate.value:.0f}" for s in scores)
                lines.append(f"{mask:<{first}}" + "".join(f"{c:>{width}}" for c in cells))
            lines.append("")
        return [*lines, "accurately / approximately recovered, in percent of the images"]

    def _score(self, set_name: str, mask: str, method: str) -> Score:
        return self.best(set_name, method) if mask == "any mask" else self.record(set_name, mask, method).score

    def to_frame(self) -> pd.DataFrame:
        """A pandas row for each image, mask and method."""
        import pandas as pd

        return pd.concat([pd.DataFrame(rows_of(r)) for r in self.records], ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-image rows, as it stands in audit.json."""
        return {
            "format": FORMAT, "title": self.title, "headline": self.headline,
            "summary": [summary_of(r) for r in self.records],
            "overall": [self._overall(s, m) for m in self.methods for s in self._sets()],
            "excess": [self._excess(m) for m in self.methods] if self.has_control else None,
            "membership": self._membership() if self.has_control else [],
            "checks": [asdict(c) for c in self.checks], "attractors": self.attractors,
            "trace_mask": self.trace_mask, "command": self.command, **self.facts,
        }  # fmt: skip

    def save(self, folder: str | Path) -> Path:
        """Write JSON, the per-image table, pictures and the HTML report; returns the folder."""
        from recollect.report import write_report

        folder = Path(folder)
        for record in self.records:
            if self.store.folder != folder:
                write_record(folder / "cells", record)
        with atomically(folder / "images.csv") as file:
            _write_csv(file, self.records)
        save_arrays(folder / "samples.npz", self.store.pictures)
        if self.store.film:
            save_arrays(folder / "traces.npz", self.store.film)
        write_json(folder / "audit.json", self.to_dict())
        write_report(folder)
        return folder

    def _sets(self) -> list[str]:
        return ["train", "control"] if self.has_control else ["train"]

    def _overall(self, set_name: str, method: str) -> dict[str, Any]:
        score = self.best(set_name, method)
        rates = {"accurate": rate_facts(score.accurate), "approximate": rate_facts(score.approximate)}
        return {"set": set_name, "method": method, **rates}

    def _excess(self, method: str) -> dict[str, Any]:
        both = {"accurate": self.excess(method, ACCURATE), "approximate": self.excess(method, APPROXIMATE)}
        return {"method": method, **{name: asdict(e) for name, e in both.items() if e}}

    def _membership(self) -> list[dict[str, Any]]:
        rows = []
        for method in self.methods:
            for mask in [*self.masks, "any mask"]:
                errors = [self._score(s, mask, method).mse.tolist() for s in self._sets()]
                name = "any" if mask == "any mask" else mask
                rows.append({"mask": name, "method": method, **asdict(membership(*errors))})
        return rows


def summary_of(record: Record) -> dict[str, Any]:
    """One row of the summary: a cell's rates and means."""
    score = record.score
    finite = score.psnr[torch.isfinite(score.psnr)]
    return {
        **record.cell, "images": len(record.ids),
        "accurate": rate_facts(score.accurate), "approximate": rate_facts(score.approximate),
        "mean_psnr": float(finite.mean()) if len(finite) else None,
        "mask_accuracy": _mean(record.mask_accuracy), "mask_iou": _mean(record.mask_iou),
    }  # fmt: skip


def rate_facts(rate: Rate) -> dict[str, Any]:
    low, high = rate.interval
    return {"count": rate.count, "total": rate.total, "low": low, "high": high}


def rows_of(record: Record) -> dict[str, Any]:
    """A cell as columns, one row an image."""
    count = len(record.ids)
    unknown: Sequence[Any] = [None] * count
    return {
        **{name: [value] * count for name, value in record.cell.items()},
        "image": record.ids, "mse": record.mse, "psnr": record.score.psnr.tolist(), "rounds": record.rounds,
        "steps": record.steps, "stop": record.stop, "mask_accuracy": record.mask_accuracy or unknown,
        "mask_iou": record.mask_iou or unknown,
    }  # fmt: skip


def _write_csv(file: Path, records: Sequence[Record]) -> None:
    import csv

    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        for number, record in enumerate(records):
            columns = rows_of(record)
            if number == 0:
                writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _interval(rate: Rate) -> str:
    low, high = rate.interval
    return f"{low:.0%} to {high:.0%}"
