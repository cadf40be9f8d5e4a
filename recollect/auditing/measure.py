"""Measure the cells of an audit: one method on one damaged set at a time; a cell that is stored is not run again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.method_setup import method_for, method_identity, most_passes
from recollect.auditing.nearest import find_nearest
from recollect.auditing.pictures import SAMPLE, cell_pictures, sampled, set_pictures
from recollect.auditing.progress import AuditProgress, tell_on_stderr
from recollect.auditing.statistics import returned_positions
from recollect.auditing.store import Store
from recollect.degradation import Degradation, Erasure, Observation, observe
from recollect.devices.precision import device_of
from recollect.distributed.jobs import Log
from recollect.images import Images
from recollect.pieces import pieces
from recollect.records import PER_IMAGE, SET_LABELS, Record, cell_key
from recollect.recovery import Progress, Recovery, Stop, progress_of_part
from recollect.scoring import APPROXIMATE, mask_agreement, mse

_STOP_NAMES = {int(stop): stop.name.lower() for stop in Stop}  # one text for all images that ended so


@dataclass(frozen=True)
class Conditions:
    """What holds for every cell of an audit."""

    model_hash: str
    noise_std: float
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict)
    chunk: int | None = None
    source: str | None = None  # the hash of what the model was opened from
    pictures: bool = True  # whether pictures of a sample of the images are kept

    def settings(self, damaged: DamagedSet, method: Any, training: Images) -> dict[str, Any]:
        """All that decides the numbers of a cell; with the cell itself, its identity."""
        truth = type(damaged.truth).__name__.encode() + damaged.truth.fingerprint().cpu().numpy().tobytes()
        return {
            "method": method_identity(method),
            "noise_std": self.noise_std,
            "seed": self.seed,
            "images": damaged.images.hash,
            "training_images": training.hash,
            "mask": hashlib.sha256(truth).hexdigest()[:16],
            "model": self.model_hash,
        }


@dataclass(frozen=True, eq=False)
class Trial:
    """A cell before it is measured, or a part of it: some of its images, under the settings of the whole."""

    images: Images
    training: Images  # all training images, on any of which a recovery may end
    truth: Degradation
    method: Any
    cell: Mapping[str, str]
    settings: Mapping[str, Any]
    conditions: Conditions
    shown: np.ndarray  # positions of the images whose pictures are kept

    @classmethod
    def of(cls, damaged: DamagedSet, training: Images, name: str, method: Any, conditions: Conditions) -> Trial:
        """Plan one cell: a method, under its name, on a damaged set."""
        method = method_for(method, damaged.truth)
        cell = {"set": damaged.set, "mask": damaged.mask, "method": name}
        settings = conditions.settings(damaged, method, training)
        shown = sampled(damaged.images, keep=conditions.pictures)
        return cls(damaged.images, training, damaged.truth, method, cell, settings, conditions, shown)

    @property
    def key(self) -> str:
        return cell_key(self.cell, self.settings)

    @property
    def label(self) -> str:
        """What the user is told of the cell while it is measured."""
        return " / ".join((SET_LABELS[self.cell["set"]], self.cell["mask"], self.cell["method"]))

    def measured(self, f: Any, progress: Progress | None = None) -> Measured:
        """Measure the cell piece by piece; only numbers of each image and a few pictures are kept."""
        parts, total = [], len(self.images)
        for rows in pieces(total, self.images.shape):
            parts.append(self.part(rows)._measured_at_once(f, progress_of_part(progress, rows.start, total)))
        return join(parts)

    def part(self, rows: slice) -> Trial:
        """Return the same trial of some of its images, which follow each other."""
        shown = self.shown[(self.shown >= rows.start) & (self.shown < rows.stop)] - rows.start
        return replace(self, images=self.images[rows], truth=self.truth.of_images(rows), shown=shown)

    def _measured_at_once(self, f: Any, progress: Progress | None) -> Measured:
        """Degrade, recover, score; each image as if it were alone."""
        conditions = self.conditions
        seen = observe(self.images, self.truth, noise_std=conditions.noise_std, seed=conditions.seed)
        began = time.monotonic()
        recovery = recover(self.method, f, seen, chunk=conditions.chunk, progress=progress)
        seconds = time.monotonic() - began
        record = record_of(
            recovery, self.images, seen, self.method, self.cell, self.settings, conditions.provenance, seconds
        )
        nearest = find_nearest(recovery.estimate, self.training, device_of(f))
        record = replace(record, nearest=nearest.ids, nearest_index=nearest.index, nearest_mse=nearest.mse)
        return Measured(record, self._pictures(seen, recovery))

    def _pictures(self, seen: Observation, recovery: Recovery) -> dict[str, np.ndarray]:
        """Give the pictures of the cell by name; the damaged images are the same for every method."""
        if not len(self.shown):
            return {}
        pictures = cell_pictures(self.images, seen, recovery, self.shown)
        where = f"{self.cell['set']}/{self.cell['mask']}"
        named = {f"degraded/{where}": pictures.pop("degraded")}
        return named | {f"{kind}/{where}/{self.cell['method']}": picture for kind, picture in pictures.items()}


@dataclass(frozen=True, eq=False)
class Measured:
    """A cell, or a part of one, with the pictures of some of its images."""

    record: Record
    pictures: Mapping[str, np.ndarray]


Measurer = Callable[[Trial, Progress], Measured]


def join(parts: Sequence[Measured]) -> Measured:
    """Join parts of a cell; its seconds are those of all parts together."""
    records = [part.record for part in parts]
    first = records[0]
    rows: dict[str, Any] = {}
    for name in PER_IMAGE:
        columns = [getattr(record, name) for record in records]
        if columns[0] is not None:
            rows[name] = list(chain.from_iterable(columns))
    seconds = round(sum(record.seconds for record in records), 3)
    return Measured(replace(first, seconds=seconds, **rows), _join_pictures(parts))


def _join_pictures(parts: Sequence[Measured]) -> dict[str, np.ndarray]:
    pictured = [part.pictures for part in parts if part.pictures]
    names = pictured[0] if pictured else []
    return {name: np.concatenate([pictures[name] for pictures in pictured]) for name in names}


def measure_cells(
    measurer: Measurer, damaged_sets: Sequence[DamagedSet], training: Images, methods: Mapping[str, Any],
    conditions: Conditions, store: Store, progress: AuditProgress, tell: Log = tell_on_stderr,
) -> list[Record]:  # fmt: skip
    """Measure every method on every damaged set, in that order; stored cells are read."""
    trials = [
        Trial.of(damaged, training, name, method, conditions)
        for damaged in damaged_sets
        for name, method in methods.items()
    ]
    if moved := store.begin(trial.key for trial in trials):
        tell(moved)
    records: list[Record] = []
    ahead, done = [len(trial.images) * most_passes(trial.method) for trial in trials], 0
    for passes, trial in zip(ahead, trials, strict=True):
        record = store.find(trial.key, trial.images.ids, trial.training.ids)
        if record is None:
            within = _within_cell(progress, trial.label, done, passes, sum(ahead))
            within(0, 1)
            measured = measurer(trial, within)
            store.add(measured.record, measured.pictures)
            record = measured.record
        records.append(record)
        done += passes
    if conditions.pictures:
        _add_originals(store, damaged_sets, training, records)
    progress("all cells are done", done, done)
    return records


def _add_originals(
    store: Store, damaged_sets: Sequence[DamagedSet], training: Images, records: Sequence[Record]
) -> None:
    """Keep pictures of the sampled images, and of training images that recoveries of other pictures ended on."""
    for damaged in damaged_sets:
        store.add_pictures(set_pictures(damaged.images, sampled(damaged.images)), damaged.set)
    if returned := returned_positions(records, APPROXIMATE)[:SAMPLE]:
        store.add_pictures(set_pictures(training, np.array(returned)), "returned")


def recover(method: Any, f: Any, seen: Observation, **options: Any) -> Recovery:
    """Call a method with what it may know: the truth goes only to methods that say they know it."""
    if method.knows_truth:
        return method(f, seen.y, seen.truth, **options)
    return method(f, seen.y, **options)


def record_of(
    recovery: Recovery, images: Images, seen: Observation, method: Any, cell: Mapping[str, Any],
    settings: Mapping[str, Any], provenance: Mapping[str, Any], seconds: float,
) -> Record:  # fmt: skip
    """Keep of a recovery its errors, and how each image ended."""
    accuracy, iou = _mask_columns(method, recovery, seen)
    return Record(
        cell=cell,
        settings=settings,
        ids=list(images.ids),
        mse=mse(recovery.estimate, images.pixels).tolist(),
        rounds=recovery.rounds.tolist(),
        steps=recovery.steps.tolist(),
        stop=[_STOP_NAMES[code] for code in recovery.stop.tolist()],
        mask_accuracy=accuracy,
        mask_iou=iou,
        seconds=round(seconds, 3),
        provenance=provenance,
    )


def _mask_columns(method: Any, recovery: Recovery, seen: Observation) -> tuple[list[float] | None, list[float] | None]:
    """Per image, how an estimated mask agrees with the true one; nothing where none was estimated."""
    if method.knows_truth or not isinstance(recovery.degradation, Erasure) or not isinstance(seen.truth, Erasure):
        return None, None
    agreement = mask_agreement(recovery.degradation.keep.expand_as(seen.y), seen.truth.expand(seen.y).keep)
    return agreement.accuracy.tolist(), agreement.erased_iou.tolist()


def _within_cell(progress: AuditProgress, cell: str, before: int, passes: int, total: int) -> Progress:
    """Report progress inside a cell; a cell counts by the passes through the model that it may take."""
    return lambda done, count: progress(cell, before + passes * done / count, total)
