"""Running the cells of an audit, one method in one place at a time; what is on disk already is not run again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np

from recollect.auditing.pictures import cell_pictures, sampled, set_pictures
from recollect.auditing.request import Place, method_for
from recollect.auditing.store import Store
from recollect.degradation import Degradation, Erasure, Observation, observe
from recollect.images import Images
from recollect.records import Record, cell_key, plain
from recollect.recovery import Progress, Recovery, Stop
from recollect.scoring import mask_agreement, mse

Narrator = Callable[[str, float, float], None]  # what is being done, how far, of how much


@dataclass(frozen=True)
class Conditions:
    """What holds for every cell of an audit."""

    model_hash: str
    noise_std: float
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict)
    chunk: int | None = None

    def settings(self, place: Place, method: Any) -> dict[str, Any]:
        """All that decides the numbers of a cell; with the cell itself, its identity."""
        truth = type(place.truth).__name__.encode() + place.truth.fingerprint().cpu().numpy().tobytes()
        fields = plain(method) if is_dataclass(method) else {"repr": repr(method)}
        return {
            "method": {"kind": type(method).__name__, **fields},
            "noise_std": self.noise_std, "seed": self.seed, "images": place.images.hash,
            "mask": hashlib.sha256(truth).hexdigest()[:16], "model": self.model_hash,
        }  # fmt: skip


def cell_of(place: Place, method_name: str) -> dict[str, str]:
    return {"set": place.set, "mask": place.mask, "method": method_name}


@dataclass(frozen=True, eq=False)
class Trial:
    """A cell before it is measured, or a part of it: some of its images, under the settings of the whole."""

    images: Images
    truth: Degradation
    method: Any
    cell: Mapping[str, str]
    settings: Mapping[str, Any]
    conditions: Conditions
    shown: np.ndarray  # positions of the images whose pictures are kept

    def measured(self, f: Any, progress: Progress | None = None) -> Measured:
        """Degrade, recover, score; each image as if it were alone."""
        held = self.conditions
        seen = observe(self.images, self.truth, noise_std=held.noise_std, seed=held.seed)
        began = time.monotonic()
        found = recover(self.method, f, seen, chunk=held.chunk, progress=progress)
        seconds = time.monotonic() - began
        record = record_of(
            found, self.images, seen, self.method, self.cell, self.settings, held.provenance, seconds
        )  # fmt: skip
        pictures = cell_pictures(self.images, seen, found, self.shown) if len(self.shown) else {}
        return Measured(record, _named(self.cell, pictures))


@dataclass(frozen=True, eq=False)
class Measured:
    """A cell, or a part of one, with the pictures of some of its images."""

    record: Record
    pictures: Mapping[str, np.ndarray]


Measurer = Callable[[Trial, Progress], Measured]


def run_cells(
    measurer: Measurer, places: Sequence[Place], methods: Mapping[str, Any], conditions: Conditions, store: Store,
    narrate: Narrator,
) -> list[Record]:  # fmt: skip
    """The record of every method in every place, in that order."""
    trials = [_trial(place, name, method, conditions) for place in places for name, method in methods.items()]
    store.begin(cell_key(trial.cell, trial.settings) for trial in trials)
    for place in places:
        pictures = set_pictures(place.images, sampled(place.images))
        store.pictures |= {f"{k}/{place.set}": v for k, v in pictures.items()}
    records: list[Record] = []
    for trial in trials:
        record = store.find(cell_key(trial.cell, trial.settings))
        if record is None:
            told = _within(narrate, " / ".join(trial.cell.values()), len(records), len(trials))
            told(0, 1)
            measured = measurer(trial, told)
            store.add(measured.record, measured.pictures)
            record = measured.record
        records.append(record)
    narrate("all cells are done", len(trials), len(trials))
    return records


def _trial(place: Place, name: str, method: Any, conditions: Conditions) -> Trial:
    method = method_for(method, place.truth)
    cell, settings = cell_of(place, name), conditions.settings(place, method)
    return Trial(place.images, place.truth, method, cell, settings, conditions, sampled(place.images))


def recover(method: Any, f: Any, seen: Observation, **options: Any) -> Recovery:
    """Call a method with what it may know: the truth goes only to methods that say they need it."""
    return method(f, seen.y, seen.truth, **options) if method.knows_truth else method(f, seen.y, **options)


def record_of(
    found: Recovery, images: Images, seen: Observation, method: Any, cell: Mapping[str, Any],
    settings: Mapping[str, Any], provenance: Mapping[str, Any], seconds: float,
) -> Record:  # fmt: skip
    """What is kept of a recovery: its errors, and how each image ended."""
    accuracy, iou = _mask_columns(method, found, seen)
    return Record(
        cell=cell, settings=settings, ids=list(images.ids), mse=mse(found.estimate, images.pixels).tolist(),
        rounds=found.rounds.tolist(), steps=found.steps.tolist(),
        stop=[Stop(code).name.lower() for code in found.stop.tolist()], mask_accuracy=accuracy, mask_iou=iou,
        seconds=round(seconds, 3), provenance=provenance,
    )  # fmt: skip


def _mask_columns(method: Any, found: Recovery, seen: Observation) -> tuple[list[float] | None, list[float] | None]:
    """Per image, how an estimated mask agrees with the true one; nothing where none was estimated."""
    if method.knows_truth or not isinstance(found.degradation, Erasure) or not isinstance(seen.truth, Erasure):
        return None, None
    agreement = mask_agreement(found.degradation.keep.expand_as(seen.y), seen.truth.expand(seen.y).keep)
    return agreement.accuracy.tolist(), agreement.erased_iou.tolist()


def _named(cell: Mapping[str, str], pictures: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    place = f"{cell['set']}/{cell['mask']}"
    names = {kind: place if kind == "degraded" else f"{place}/{cell['method']}" for kind in pictures}
    return {f"{kind}/{names[kind]}": array for kind, array in pictures.items()}


def _within(narrate: Narrator, words: str, before: int, total: int) -> Progress:
    """Progress inside a cell as a fraction of one."""
    return lambda done, count: narrate(words, before + done / count, total)
