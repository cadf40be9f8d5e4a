"""Audits to report on: a real one of a planted memorizer, and records of made-up errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect import Blind, Images, Iterate, KnownMask
from recollect.auditing import audit
from recollect.records import AUDIT_FORMAT, Record, write_record, write_sealed
from recollect.report.read import SavedAudit, read_audit
from tests.planted import Memorizer


@dataclass
class AuditFiles:
    """The parts of an audit's folder, to be written or handed to the report as they are."""

    records: list[Record] = field(default_factory=list)
    samples: dict[str, np.ndarray] = field(default_factory=dict)
    traces: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def audit_json(self) -> dict[str, Any]:
        """What every audit says, unless the facts say otherwise."""
        texts = {"title": "an audit", "headline": "A finding.", "attribution": None, "command": ""}
        return {"format": AUDIT_FORMAT, **texts, **self.facts, "cells": [record.key for record in self.records]}

    @property
    def in_memory(self) -> SavedAudit:
        return SavedAudit(self.audit_json, self.records, self.samples, self.traces)

    def write(self, folder: Path) -> Path:
        for record in self.records:
            write_record(folder / "cells", record)
        write_sealed(folder / "audit.json", AUDIT_FORMAT, self.audit_json)
        for name, arrays in (("samples", self.samples), ("traces", self.traces)):
            named: dict[str, Any] = dict(arrays)
            if named:
                np.savez(folder / f"{name}.npz", **named)
        return folder


def record(mse: Sequence[float | None], mask: str = "block", method: str = "blind", set_name: str = "train") -> Record:
    """A record of made-up errors; None is an estimate that is not finite."""
    ids = [str(number) for number in range(len(mse))]
    errors: list[Any] = list(mse)
    count = len(errors)
    named = {"set": set_name, "mask": mask, "method": method}
    return Record(named, {}, ids, errors, [1] * count, [40] * count, ["done"] * count)


def planted_audit(folder: Path) -> AuditFiles:
    """Audit a memorizer of 24 images that remembers most of them and half-remembers the others."""
    train = Images(pattern_images(24, 16, seed=1), name="patterns")
    control = Images(pattern_images(24, 16, seed=2), name="other patterns")
    methods = {
        "blind": Blind(gamma=0.1, steps=20, limit=12),
        "iterate": Iterate(limit=60),
        "known": KnownMask(gamma=0.1),
    }
    audit(
        Memorizer(_half_remembered(train.pixels), sharpness=25.0),
        train=train,
        control=control,
        masks=["block", "dust"],
        methods=methods,
        attractors=12,
        title="planted memorizer",
        command="recollect audit model.safetensors --train patterns",
        out=folder,
    )
    saved = read_audit(folder)
    return AuditFiles(saved.records, dict(saved.samples), dict(saved.traces), dict(saved.facts))


def pattern_images(count: int, size: int, seed: int) -> Tensor:
    """Smooth random pictures, all unlike each other."""
    coarse = torch.rand(count, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").clamp(0, 1)


def _half_remembered(pixels: Tensor) -> Tensor:
    """Store every third image with ever more noise, so that errors spread over decades."""
    strength = torch.logspace(-4, -0.7, len(pixels)).view(-1, 1, 1, 1)
    noise = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(3))
    third = (torch.arange(len(pixels)) % 3 == 1).view(-1, 1, 1, 1)
    return (pixels + strength * noise * third).clamp(0, 1)
