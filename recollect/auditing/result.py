"""The result of an audit: in sentences, as a table, and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.auditing.checks import Check
from recollect.auditing.headline import printout
from recollect.auditing.pictures import save_arrays
from recollect.auditing.statistics import Statistics, image_columns, tables
from recollect.auditing.store import Store, write_csv
from recollect.records import AUDIT_FORMAT, atomically, write_json

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Audit(Statistics):
    """The outcome of an audit; print it for the headline and the rates."""

    headline: str
    attribution: str | None  # what only the model recovers; None where no prior was tried
    checks: list[Check]
    facts: Mapping[str, Any]  # model, images, settings, versions
    store: Store
    title: str = ""
    command: str = ""
    attractors: list[dict[str, Any]] | None = None
    trace_mask: str | None = None  # the mask of the recoveries that are kept round by round

    def __str__(self) -> str:
        tuned_on = len(self.facts["settings"].get("tuning_images_left_out", ()))
        return printout(self, self.headline, self.attribution, self.checks, tuned_on)

    def to_frame(self) -> pd.DataFrame:
        """Give a pandas row for each image, mask and method."""
        import pandas as pd

        return pd.concat([pd.DataFrame(image_columns(record)) for record in self.records], ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the per-image rows, as it stands in audit.json."""
        return {
            "format": AUDIT_FORMAT,
            "title": self.title,
            "headline": self.headline,
            "main_method": self.main_method,
            "attribution": self.attribution,
            "cells": [record.key for record in self.records],
            **tables(self),
            "checks": [asdict(check) for check in self.checks],
            "attractors": self.attractors,
            "trace_mask": self.trace_mask,
            "command": self.command,
            **self.facts,
        }

    def save(self, folder: str | Path) -> Path:
        """Write JSON, the per-image table, pictures and the HTML report; gives the folder."""
        from recollect.report import write_report

        folder = Path(folder)
        if self.store.folder is None or self.store.folder.resolve() != folder.resolve():
            self.store.copy_to(folder, self.records)
        with atomically(folder / "images.csv") as file:
            write_csv(file, self.records)
        save_arrays(folder / "samples.npz", self.store.pictures)
        if self.store.traces:
            save_arrays(folder / "traces.npz", self.store.traces)
        write_json(folder / "audit.json", self.to_dict())
        write_report(folder)
        return folder
