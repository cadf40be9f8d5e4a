"""Small audits whose outcome is known beforehand."""

import json
from pathlib import Path
from typing import Any

import torch

from recollect import Images
from recollect.auditing import Audit, audit
from tests.planted import Memorizer


def pictures(count: int, seed: int, size: int = 8, channels: int = 3) -> torch.Tensor:
    """Random images, all unlike each other and without a black pixel."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, channels, size, size, generator=generator) * 0.8 + 0.2


def images(count: int, seed: int, **more: Any) -> Images:
    return Images(pictures(count, seed, **more), name=f"pictures-{seed}")


def small_audit(train: int = 8, control: int | Images | None = 6, **more: Any) -> Audit:
    """A memorizer that holds the training images and no control image."""
    stored = images(train, 1)
    options: dict[str, Any] = {"masks": "block,half", "gamma": 0.5, "start": "half_kept"}
    options["control"] = images(control, 2) if isinstance(control, int) else control
    model = more.pop("model", Memorizer(stored.pixels))
    return audit(model, train=more.pop("given", stored), **options | more)


def comparable_facts(folder: Path) -> dict[str, Any]:
    """audit.json without what has to differ between two runs."""
    saved = json.loads((folder / "audit.json").read_text())
    saved["provenance"].pop("started")
    saved.pop("checksum")
    for row in saved["summary"]:
        row.pop("seconds")
    return saved
