"""The result of an audit: in sentences, as a table, and on disk."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.auditing.canary_finding import CanaryFinding, Coins, find_canaries
from recollect.auditing.checks import Check
from recollect.auditing.headline import Finding, find, membership_sentence
from recollect.auditing.manifest import write_manifest
from recollect.auditing.printout import as_text
from recollect.auditing.statistics import TABLES, Statistics, found_among_samples, image_columns, tables
from recollect.auditing.store import Store, write_csv
from recollect.auditing.thresholds import Threshold
from recollect.auditing.verdict import Verdict
from recollect.counting import of_kind
from recollect.errors import InputError, is_whole
from recollect.records import AUDIT_FORMAT, atomically, load_arrays, save_arrays, write_sealed

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

    from recollect.report.read import SavedAudit


# What audit.json holds beside the facts of the audit: conclusions, and tables computed from the records.
OWN_FACTS = (
    "title", "headline", "finding", "canaries", "verdict", "main_method", "attribution", "cells", *TABLES, "checks",
    "attractors", "trace_mask", "command",
)  # fmt: skip
FLOATS = ("mse", "psnr", "nearest_mse", "mask_accuracy", "mask_iou")


@dataclass(frozen=True, eq=False)
class Audit(Statistics):
    """The outcome of an audit; print it for the headline and the rates.

    Attributes:
        headline: The sentence that opens the report.
        verdict: Passed, failed or inconclusive; None where no limit was given.
        checks: Tests of the audit itself, each with a level and a sentence.
        facts: Model, images, settings and versions.

    Examples:
        >>> import recollect
        >>> result = recollect.audit(
        ...     lambda x: x * 0, train="photos?count=4&size=8", masks="half", methods="iterate", out="audit"
        ... )
        >>> from recollect.auditing import Audit
        >>> Audit.load("audit").headline == result.headline
        True
    """

    headline: str
    finding: Finding
    verdict: Verdict | None  # None where no limit was given
    attribution: str | None  # what only the model recovers; None where no prior was tried
    checks: list[Check]
    facts: Mapping[str, Any]  # model, images, settings, versions
    store: Store
    title: str = ""
    command: str = ""
    attractors: list[dict[str, Any]] | None = None
    canaries: CanaryFinding | None = None  # of an audit of canaries
    trace_mask: str | None = None  # the mask of the recoveries that are kept round by round

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        """Show the headline and the verdict in a notebook."""
        sentences = [self.headline, self.finding.beside]
        if self.verdict:
            sentences.append(str(self.verdict))
        first, *others = (html.escape(sentence) for sentence in sentences)
        return f"<p><b>{first}</b></p>" + "".join(f"<p>{sentence}</p>" for sentence in others)

    @classmethod
    def load(cls, folder: str | Path) -> Audit:
        """Read a saved audit from its folder, which may be read-only. Numbers are computed from its records.

        Args:
            folder: The folder of the audit.

        Returns:
            The audit.
        """
        from recollect.report.read import read_audit

        folder = Path(folder)
        saved = read_audit(folder)
        return cls.of(saved, _stored_pictures(folder, saved))

    @classmethod
    def of(cls, saved: SavedAudit, store: Store | None = None) -> Audit:
        """Compute an audit from what its folder holds; without a store it has no pictures and cannot be saved."""
        facts = saved.facts
        statistics = Statistics(
            saved.records,
            facts["main_method"],
            counted=facts["finding"]["methods"],
            generated=found_among_samples(facts),
        )
        threshold = Threshold(**facts["finding"]["threshold"])
        verdict = canaries = None
        if facts["verdict"]:
            verdict = Verdict.of(facts["verdict"])
        if facts.get("canaries"):
            canaries = find_canaries(statistics, Coins.of(facts["canaries"]), threshold)
        return cls(
            statistics.records,
            statistics.main_method,
            counted=statistics.counted,
            generated=statistics.generated,
            headline=facts["headline"],
            finding=find(statistics, threshold, str(facts["train"].get("kind", "images"))),
            canaries=canaries,
            verdict=verdict,
            attribution=facts["attribution"],
            checks=[Check(**check) for check in facts["checks"]],
            facts={name: value for name, value in facts.items() if name not in OWN_FACTS},
            store=store or Store(None),
            title=facts["title"],
            command=facts["command"],
            attractors=facts["attractors"],
            trace_mask=facts["trace_mask"],
        )

    @property
    def kind(self) -> str:
        """What was audited: images, signals or rows."""
        return str(self.facts["train"].get("kind", "images"))

    @property
    def membership_sentence(self) -> str | None:
        """How well the error tells training from unseen images, in words."""
        sentence = membership_sentence(self)
        return sentence and of_kind(sentence, self.kind)

    def to_frame(self) -> pd.DataFrame:
        """Give a pandas row for each image, mask and method."""
        import pandas as pd

        columns = [pd.DataFrame(image_columns(record)).astype(dict.fromkeys(FLOATS, float)) for record in self.records]
        return pd.concat(columns, ignore_index=True)

    def picture(self, mask: str | None = None, method: str | None = None, count: int = 4) -> Image:
        """Draw a few training and unseen images as given, result and original; a notebook shows the picture.

        Args:
            mask: The mask to show. Defaults to the first.
            method: The method to show. Defaults to the best attack.
            count: How many images of each set.

        Returns:
            The picture.
        """
        from recollect.report.comparison import draw_comparison

        mask, method = mask or self.masks[0], method or self.main_method
        self.record("train", mask, method)  # refuses names that this audit does not have
        if not self.store.pictures:
            raise InputError("This audit kept no pictures; run it with pictures=True.")
        if not is_whole(count, 1):
            raise InputError(f"count is how many images of each set to show, 1 or more; got {count!r}.")
        return draw_comparison(self.store.pictures, mask, method, count, self.kind)

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the per-image rows, as it stands in audit.json."""
        return {
            "format": AUDIT_FORMAT,
            "title": self.title,
            "headline": self.headline,
            "finding": self.finding.facts(),
            "canaries": self.canaries.facts() if self.canaries else None,
            "verdict": self.verdict.facts() if self.verdict else None,
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
        for name, pictures in (("samples.npz", self.store.pictures), ("traces.npz", self.store.traces)):
            if pictures:
                save_arrays(folder / name, pictures)
        write_sealed(folder / "audit.json", AUDIT_FORMAT, self.to_dict())
        write_report(folder)
        write_manifest(folder, (record.key for record in self.records))
        return folder


def _stored_pictures(folder: Path, saved: SavedAudit) -> Store:
    """Hold the pictures in memory, so that the audit can be saved elsewhere."""
    store = Store(None, with_pictures=saved.block("settings").get("pictures", True))
    for record in saved.records:
        path = folder / "cells" / f"{record.key}.npz"
        pictures = load_arrays(path) if path.exists() else {}
        store.add(record, pictures)
    store.pictures |= saved.samples
    store.traces |= saved.traces
    return store
