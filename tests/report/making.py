"""Audits on disk without training: real records of a planted memorizer, and of made-up errors where many are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect import Blind, Images, Iterate, KnownMask, Score, mask, observe
from recollect.degradation import Erasure
from recollect.records import Record, provenance, write_json, write_record
from recollect.recovery import Snapshot
from recollect.scoring import Rate, mask_agreement
from tests.planted import Memorizer

METHODS: dict[str, Any] = {
    "blind": Blind(gamma=0.1, steps=20, limit=12),
    "iterate": Iterate(limit=60),
    "known": KnownMask(gamma=0.1),
}


@dataclass
class Making:
    """The parts of an audit's folder as they come together."""

    records: list[Record] = field(default_factory=list)
    samples: dict[str, np.ndarray] = field(default_factory=dict)
    traces: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        for record in self.records:
            write_record(folder / "cells", record)
        write_json(folder / "audit.json", {"format": "recollect-audit-1", **self.facts})
        if self.samples:
            np.savez(folder / "samples.npz", **self.samples)
        if self.traces:
            np.savez(folder / "traces.npz", **self.traces)
        return folder


def pattern_images(count: int, size: int, seed: int) -> Tensor:
    """Smooth random pictures, all unlike each other."""
    coarse = torch.rand(count, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").clamp(0, 1)


def planted_audit(
    train: Images, control: Images | None, masks: Sequence[str], *, shown: int = 8, traced: int = 2, **cell: Any
) -> Making:
    """Audit a memorizer that remembers most of `train` and half-remembers the rest."""
    made = Making()
    memorizer = Memorizer(_remembered(train.pixels), sharpness=25.0)
    for name, images in {"train": train, "control": control}.items():
        if images is None:
            continue
        picked = np.linspace(0, len(images) - 1, min(shown, len(images))).round().astype(int)
        made.samples |= {f"original/{name}": _uint8(images.pixels[picked]), f"index/{name}": picked}
        for what in masks:
            _recover(made, memorizer, name, images, what, picked, cell)
    if traced:
        _trace(made, memorizer, train, masks[0], traced)
    made.facts = facts_of(made.records, train, control, list(masks))
    return made


def _remembered(pixels: Tensor) -> Tensor:
    """Every third image is stored with ever more blur of values, so that errors are spread over decades."""
    strength = torch.logspace(-4, -0.7, len(pixels)).view(-1, 1, 1, 1)
    noise = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(3))
    return (pixels + strength * noise * (torch.arange(len(pixels)) % 3 == 1).view(-1, 1, 1, 1)).clamp(0, 1)


def _recover(
    made: Making, f: Memorizer, name: str, images: Images, what: str, picked: np.ndarray, cell: dict[str, Any]
) -> None:
    seen = observe(images, mask(what, images.shape))
    made.samples[f"degraded/{name}/{what}"] = _uint8(seen.y[picked])
    for title, method in METHODS.items():
        found = method(f, seen.y, seen.truth) if method.knows_truth else method(f, seen.y)
        record = {"accuracy": None, "iou": None}
        if isinstance(found.degradation, Erasure) and not method.knows_truth:
            agreement = mask_agreement(found.degradation.keep, seen.truth.keep)
            record = {"accuracy": agreement.accuracy.tolist(), "iou": agreement.erased_iou.tolist()}
            kept = found.degradation.keep[picked].float().mean(1)
            made.samples[f"mask/{name}/{what}/{title}"] = (kept * 255).round().to(torch.uint8).numpy()
        error = (found.estimate - images.pixels)[picked].abs().mean(1)
        made.samples[f"estimate/{name}/{what}/{title}"] = _uint8(found.estimate[picked])
        made.samples[f"error/{name}/{what}/{title}"] = (error / 0.25 * 255).clamp(0, 255).to(torch.uint8).numpy()
        made.records.append(
            Record(
                {"set": name, "mask": what, "method": title, **cell},
                {"gamma": 0.1},
                list(images.ids),
                Score.of(found.estimate, images.pixels).mse.tolist(),
                found.rounds.tolist(),
                found.steps.tolist(),
                [stop.name.lower() for stop in found.stops],
                record["accuracy"],
                record["iou"],
            )
        )


def _trace(made: Making, f: Memorizer, train: Images, what: str, count: int) -> None:
    seen = observe(train[:count], mask(what, train.shape))
    made.facts["trace_mask"] = what
    for j in range(count):
        made.traces |= {
            f"original/{j}": _uint8(train.pixels[j : j + 1])[0],
            f"degraded/{j}": _uint8(seen.y[j : j + 1])[0],
        }
        for title in ("blind", "iterate"):
            frames: list[Snapshot] = []
            METHODS[title](f, seen.y[j : j + 1], trace=frames.append)
            made.traces[f"estimate/{title}/{j}"] = np.concatenate([_uint8(s.estimate) for s in frames])
            if title == "blind":
                kept = torch.cat([s.degradation.keep for s in frames if isinstance(s.degradation, Erasure)])
                made.traces[f"mask/{title}/{j}"] = (kept.float().mean(1) * 255).to(torch.uint8).numpy()


def facts_of(records: list[Record], train: Images, control: Images | None, masks: list[str]) -> dict[str, Any]:
    """audit.json as an audit writes it."""
    return {
        "title": "planted memorizer",
        "headline": headline(records),
        "summary": [_summary(record) for record in records],
        "membership": _membership(records) if control is not None else [],
        "checks": [
            {"name": "control", "level": "ok", "sentence": "No control image is a near copy of a training image."},
            {
                "name": "fit",
                "level": "note",
                "sentence": "The train loss is 2e-5; the paper's strongest results are at 1e-8.",
            },
            {
                "name": "precision",
                "level": "warning",
                "sentence": "Weights were trained in TF32; errors below 1e-7 are not to be trusted.",
            },
        ],
        "model": {
            "name": "memorizer",
            "kind": "softmax attention over stored images",
            "parameters": 1234567,
            "train_loss": 2.1e-5,
        },
        "train": {"name": train.name, "images": len(train), "hash": train.hash},
        "control": None if control is None else {"name": control.name, "images": len(control), "hash": control.hash},
        "settings": {"seed": 42, "noise_std": 0.0, "masks": masks, "blind": {"gamma": 0.1, "steps": 20}},
        "provenance": provenance(started="2025-01-02T03:04:05Z"),
        "command": "recollect audit model.safetensors --train photos:size=32 --masks " + ",".join(masks),
        "attractors": [
            {
                "id": i,
                "fixed_point_error": 10 ** (-7 + 5 * k / 20),
                "spectral_radius": 0.1 + k / 16,
                "recovered": k < 12,
            }
            for k, i in enumerate(train.ids[:20])
        ],
        "trace_mask": masks[0],
    }


def headline(records: list[Record]) -> str:
    best = max((r for r in records if r.cell["set"] == "train"), key=lambda r: r.score.approximate.value)
    rate = best.score.approximate
    return f"Of {rate.total} training images, {rate.count} could be read back from the autoencoder, and few others."


def _summary(record: Record) -> dict[str, Any]:
    score = record.score
    rates = {"accurate": rate_row(score.accurate), "approximate": rate_row(score.approximate)}
    return {**record.cell, "images": len(record.ids), **rates, "mean_psnr": score.mean_psnr}


def rate_row(rate: Rate) -> dict[str, Any]:
    return {"count": rate.count, "total": rate.total, "low": rate.interval[0], "high": rate.interval[1]}


def _membership(records: list[Record]) -> list[dict[str, Any]]:
    by_place = {(r.cell["set"], r.cell["mask"], r.cell["method"]): r for r in records}
    rows = []
    for (set_, what, method), record in by_place.items():
        if set_ == "train" and ("control", what, method) in by_place:
            other = by_place["control", what, method]
            cuts = sorted([*record.mse, *other.mse])
            roc = [
                [0.0, 0.0],
                *([float(np.mean(np.array(other.mse) <= t)), float(np.mean(np.array(record.mse) <= t))] for t in cuts),
            ]
            area = float(np.trapezoid([b for _, b in roc], [a for a, _ in roc]))
            tpr = max(b for a, b in roc if a <= 0.01)
            rows.append({"mask": what, "method": method, "auc": area, "tpr_at_1_fpr": tpr, "roc": roc})
    return rows


def _uint8(pixels: Tensor) -> np.ndarray:
    return (pixels.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
