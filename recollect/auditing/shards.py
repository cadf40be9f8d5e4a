"""Measure a cell in shards of images, here or on many machines, and join them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from recollect.auditing.measure import Conditions, Measured, Trial, join
from recollect.degradation import Degradation
from recollect.devices.precision import device_of
from recollect.distributed.jobs import Budget, Log, Runner, Shared, Task
from recollect.engine import ARITHMETIC_IMAGES, arithmetic_of
from recollect.errors import InputError
from recollect.images import Images
from recollect.models import PortableModel, source_hash
from recollect.records import provenance
from recollect.recovery import Progress

TURNS = 3  # shards for each worker, so that one that is slow or lost does not hold up the others for long
LARGEST = 4096  # images of a shard; more gain no speed


class ShardedMeasurer:
    """Measures cells in shards; images and masks are sent once for all methods that are tried on them."""

    def __init__(
        self, runner: Runner, model: PortableModel, workers: int, *, largest: int = LARGEST, log: Log = lambda _: None
    ) -> None:
        self._runner, self._workers, self._largest, self._log = runner, workers, largest, log
        self._model = Shared(lambda: model)
        self._shared: dict[Images | Degradation, dict[range, Shared[Any]]] = {}

    def __call__(self, trial: Trial, progress: Progress) -> Measured:
        # Images and masks of earlier cells are dropped.
        self._shared = {whole: self._shared.get(whole, {}) for whole in (trial.images, trial.training, trial.truth)}
        shards = cut(len(trial.images), self._workers * TURNS, self._largest)
        method = Shared(lambda: trial.method)  # it may hold a network of its own
        parts: dict[range, Measured] = {}

        def keep(shard: range, part: Measured) -> str:
            parts[shard] = part
            progress(sum(map(len, parts)), len(trial.images))
            return ""

        def job(_budget: Budget, /) -> Iterator[Task]:
            for shard in shards:
                name = f"{trial.label}, images {shard[0]} to {shard[-1]}"
                yield Task(name, measure_shard, self._inputs(trial, method, shard), partial(keep, shard))

        if not self._runner([job], Budget(), lambda line: self._log(line) if line else None):
            raise InputError(
                f"{len(shards) - len(parts)} of {len(shards)} shards of a cell failed, for the reasons printed above."
            )
        cell = join([parts[shard] for shard in shards])
        where = {**cell.record.provenance, "shards": len(shards)}
        return replace(cell, record=replace(cell.record, provenance=where))

    def _inputs(self, trial: Trial, method: Shared[Any], shard: range) -> tuple[Any, ...]:
        first, last = shard[0], shard[-1]
        is_inside = (trial.shown >= first) & (trial.shown <= last)
        shown = trial.shown[is_inside] - first
        truth = self._share(trial.truth, shard) if len(trial.truth) > 1 else trial.truth
        images = self._share(trial.images, shard)
        training = self._share(trial.training, range(len(trial.training)))
        return self._model, images, training, truth, method, trial.cell, trial.settings, trial.conditions, shown

    def _share(self, whole: Images | Degradation, shard: range) -> Shared[Any]:
        """Share these rows as a copy: a view would be sent with everything that it is a view of."""
        return self._shared[whole].setdefault(shard, Shared(partial(whole.__getitem__, np.array(shard))))


def cut(count: int, pieces: int, largest: int) -> list[range]:
    """Cut `count` images in about so many shards of nearly equal size."""
    number = max(-(-count // largest), min(pieces, count))
    edges = [count * i // number for i in range(number + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def measure_shard(
    model: PortableModel, images: Images, training: Images, truth: Degradation, method: Any, cell: Mapping[str, str],
    settings: Mapping[str, Any], conditions: Conditions, shown: np.ndarray,
) -> Measured:  # fmt: skip
    """Measure a shard on any machine; the provenance is of the machine that does it."""
    f = model.opened
    _check_source(model, conditions)
    started = conditions.provenance.get("started")
    where = provenance(device_of(f), started=started, products=arithmetic_of(f, images[:ARITHMETIC_IMAGES].pixels))
    trial = Trial(images, training, truth, method, cell, settings, replace(conditions, provenance=where), shown)
    return trial.measured(f)


def _check_source(model: PortableModel, conditions: Conditions) -> None:
    """Refuse a factory whose code differs from that on the machine that started the audit; files were sent along."""
    if conditions.source is None or "what" in model.files:
        return
    if source_hash(model.what) != conditions.source:
        raise InputError(f"This machine has other code for {model.what} than the machine that started the audit.")
