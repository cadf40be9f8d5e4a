"""What an audit found: in words, as a table, and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.auditing import headline as words
from recollect.auditing import statistics as tables
from recollect.auditing.checks import Check
from recollect.auditing.membership import Membership, membership
from recollect.auditing.pictures import save_arrays
from recollect.auditing.rates import best, pooled
from recollect.auditing.store import Store
from recollect.errors import InputError
from recollect.records import AUDIT_FORMAT, Record, atomically, write_json
from recollect.scoring import ACCURATE, Excess, Rate, Score, excess

if TYPE_CHECKING:
    import pandas as pd

ALL_MASKS, ANY_MASK = "all masks", "any mask"  # every try counts; an image counts once, by its best try


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
    overall = (ALL_MASKS, ANY_MASK)

    @property
    def sets(self) -> list[str]:
        return list(dict.fromkeys(r.cell["set"] for r in self.records))

    @property
    def masks(self) -> list[str]:
        return list(dict.fromkeys(r.cell["mask"] for r in self.records))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(r.cell["method"] for r in self.records))

    @property
    def has_control(self) -> bool:
        return "control" in self.sets

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

    def score(self, set_name: str, mask: str, method: str) -> Score:
        """The errors under a mask; under "any mask" each image's smallest."""
        if mask == ANY_MASK:
            return best([self.record(set_name, m, method).score for m in self.masks])
        return self.record(set_name, mask, method).score

    def rate(self, set_name: str, mask: str, method: str, threshold: float = ACCURATE) -> Rate:
        """The share of images below a threshold; under "all masks" the share of all tries."""
        if mask == ALL_MASKS:
            return pooled([self.record(set_name, m, method).score for m in self.masks], threshold)
        return self.score(set_name, mask, method).rate(threshold)

    def excess(self, method: str | None = None, threshold: float = ACCURATE, mask: str = ANY_MASK) -> Excess | None:
        """How far the training rate is above the control rate; None without a control set."""
        if not self.has_control:
            return None
        train, control = (self.rate(s, mask, method or self.main_method, threshold) for s in ("train", "control"))
        return excess(train, control)

    def membership(self, method: str | None = None, mask: str = ANY_MASK) -> Membership | None:
        """How well the recovery error tells training from control images; None without a control set."""
        if not self.has_control:
            return None
        errors = (self.score(s, mask, method or self.main_method).mse.tolist() for s in ("train", "control"))
        return membership(*errors)

    @property
    def headline(self) -> str:
        return words.headline(self)

    def __str__(self) -> str:
        return words.in_full(self)

    def to_frame(self) -> pd.DataFrame:
        """A pandas row for each image, mask and method."""
        import pandas as pd

        return pd.concat([pd.DataFrame(tables.image_columns(r)) for r in self.records], ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-image rows, as it stands in audit.json."""
        return {
            "format": AUDIT_FORMAT, "title": self.title, "headline": self.headline, "main_method": self.main_method,
            "attribution": words.attribution(self),
            "cells": [r.key for r in self.records],
            "summary": list(tables.summary_rows(self.records)), "overall": list(tables.overall_rows(self)),
            "excess": list(tables.excess_rows(self)), "membership": list(tables.membership_rows(self)),
            "checks": [asdict(c) for c in self.checks], "attractors": self.attractors,
            "trace_mask": self.trace_mask, "command": self.command, **self.facts,
        }  # fmt: skip

    def save(self, folder: str | Path) -> Path:
        """Write JSON, the per-image table, pictures and the HTML report; returns the folder."""
        from recollect.report import write_report

        folder = Path(folder)
        if self.store.folder is None or self.store.folder.resolve() != folder.resolve():
            self.store.copy_to(folder, self.records)
        with atomically(folder / "images.csv") as file:
            tables.write_csv(file, self.records)
        save_arrays(folder / "samples.npz", self.store.pictures)
        if self.store.film:
            save_arrays(folder / "traces.npz", self.store.film)
        write_json(folder / "audit.json", self.to_dict())
        write_report(folder)
        return folder
