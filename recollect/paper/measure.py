"""The jobs: a training with every cell that needs its weights, an experiment's pictures, an experiment's facts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.auditing import record_of, recover
from recollect.auditing.generic_baseline import prior_facts
from recollect.auditing.model_facts import fingerprint, train_loss
from recollect.auditing.pictures import save_arrays
from recollect.degradation import Degradation, Observation
from recollect.diffusion import can_open_priors
from recollect.distributed.jobs import Budget, Shared, Task
from recollect.engine import arithmetic_of
from recollect.images import Images
from recollect.paper.cells import GENERIC, Cell, Fit
from recollect.paper.experiment import Experiment, Pictures
from recollect.paper.fit import Bench, finished, training
from recollect.paper.scales import Scale
from recollect.records import Record, provenance

SIDE_BY_SIDE = 2000  # sets of more images fill a GPU by themselves, and their masks together a laptop's memory


@dataclass(frozen=True)
class Measure:
    """Train if that is needed, then measure the cells that have no record yet; lowest loss first."""

    bench: Bench
    fit: Fit
    cells: Sequence[Cell]
    shown: bool = False  # pictures are still to be taken with its weights

    def __call__(self, budget: Budget) -> Iterator[Task]:
        results = self.bench.results
        pending = [cell for cell in self.cells if results.missing(cell)]
        wants_weights = self._wants_weights(pending)
        if not pending and not wants_weights:
            return
        sets = {part: Shared(partial(self.bench.images, self.fit, part)) for part in ("train", "control")}
        if wants_weights and not finished(self.bench, self.fit):
            yield training(self.bench, self.fit, sets["train"], budget)
        fresh = [cell for cell in _in_reach(self.bench, pending) if not results.has(cell)]
        once = {cell.key: cell for cell in fresh}.values()  # the generic method's record serves every loss
        order = sorted(once, key=lambda c: c.loss or 0.0)  # stable: masks and methods stay in their order
        prior: Shared[torch.nn.Module] = Shared(partial(self.bench.prior, self.fit.images))
        for loss in dict.fromkeys(cell.loss for cell in order):
            network: Shared[torch.nn.Module] = Shared(partial(self.bench.weights, self.fit, loss))
            for some in _together([c for c in order if c.loss == loss]):
                name = f"{some[0]} and {len(some) - 1} more masks" if some[1:] else str(some[0])
                model = network if some[0].sees_network else prior
                inputs = (some, model, sets["train"], sets[some[0].set], self.bench.device)
                yield Task(name, measure, inputs, self._keep)

    def _wants_weights(self, pending: Sequence[Cell]) -> bool:
        """For pictures, for cells, or because the training itself is what was asked for."""
        if self.shown or any(cell.sees_network for cell in pending):
            return True
        facts = self.bench.results.training(self.fit)
        asked_for = not self.cells or any(cell.sees_network for cell in self.cells)
        return not pending and asked_for and not (facts and facts["finished"])

    def _keep(self, records: Sequence[Record]) -> str:
        for record in records:
            self.bench.results.add(record)
        return "\n".join(describe(record) for record in records)


def measure(
    cells: Sequence[Cell], model: torch.nn.Module, train: Images, images: Images, device: torch.device
) -> list[Record]:
    """The records of cells that differ in their mask alone, on any machine; `model` is the network or the prior.

    They are recovered as one batch: the few images of each that take many rounds then keep a GPU busy together.
    """
    images = cells[0].fit.images.chosen(images)
    model = model.to(device)
    method, size = cells[0].settled_method(model), len(images)
    seen = [cell.observe(images) for cell in cells]
    all_seen = Observation(
        torch.cat([s.y for s in seen]), Degradation.join([s.truth.expand(s.y) for s in seen]), seen[0].noise_std
    )
    began = time.monotonic()
    found = recover(method, model if cells[0].sees_network else None, all_seen)
    seconds = time.monotonic() - began
    if cells[0].sees_network:
        where = _about(model, train, device)
    else:
        where = provenance(device, prior=prior_facts({GENERIC: method}, {cells[0].set: images}))
    about = {**where, "images": {"hash": images.hash, "count": size}}
    return [
        record_of(
            found[i * size : (i + 1) * size], images, seen[i], method, cell.identity, cell.settings, about,
            seconds * share,
        )
        for i, (cell, share) in enumerate(zip(cells, shares(found.steps, size), strict=True))
    ]  # fmt: skip


def shares(steps: Tensor, size: int) -> list[float]:
    """Of the work on all images, how much each `size` of them took; a method that counts no steps takes equally."""
    work = (steps.double() + 1).view(-1, size).sum(1)
    return (work / work.sum()).tolist()


def _together(cells: Sequence[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Cells in their order, those that differ in their mask alone side by side; large sets stay by themselves."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        images = cell.fit.images
        alone = cell.mask if (images.attacked or images.count) > SIDE_BY_SIDE else None
        groups.setdefault((cell.set, cell.method_name, cell.noise_std, alone), []).append(cell)
    yield from map(tuple, groups.values())


@lru_cache(maxsize=1)  # the cells of one network follow each other
def _about(f: torch.nn.Module, train: Images, device: torch.device) -> dict[str, Any]:
    loss = train_loss(f, train)
    known = {
        "train_loss": float(f"{loss:.4g}"),
        "model": fingerprint(f, train),
        "products": arithmetic_of(f, train.pixels),
    }
    return provenance(device, **known)


@dataclass(frozen=True)
class TakePictures:
    """The pictures of an experiment, taken once and kept in the work folder."""

    bench: Bench
    experiment: Experiment
    scale: Scale

    @property
    def fit(self) -> Fit | None:
        """The training whose weights are needed; None where there is nothing to be done, or none is."""
        pictures = self._to_take
        return pictures.fit(self.scale) if pictures and pictures.needs_weights else None

    @property
    def _to_take(self) -> Pictures | None:
        pictures = self.experiment.pictures
        if pictures is None or self.bench.pictures(self.experiment.id).exists():
            return None
        return pictures if can_open_priors() or not pictures.needs_prior else None

    def __call__(self, _budget: Budget) -> Iterator[Task]:
        pictures = self._to_take
        if pictures and (self.fit is None or finished(self.bench, self.fit)):
            inputs = (self.bench, self.scale, pictures.fit(self.scale))
            yield Task(f"{self.experiment.id}: pictures", pictures.take, inputs, self._keep)

    def _keep(self, arrays: dict[str, np.ndarray]) -> str:
        path = self.bench.pictures(self.experiment.id)
        save_arrays(path, arrays)
        return f"{self.experiment.id}: pictures are in {path}"


@dataclass(frozen=True)
class FindFacts:
    """What an experiment finds that is neither a cell nor a picture, as one JSON."""

    bench: Bench
    experiment: Experiment
    scale: Scale

    def __call__(self, _budget: Budget) -> Iterator[Task]:
        find = self.experiment.facts
        if find is not None and self.bench.results.facts(self.experiment.id) is None:
            yield Task(f"{self.experiment.id}: facts", find, (self.bench, self.scale), self._keep)

    def _keep(self, facts: dict[str, Any]) -> str:
        self.bench.results.add_facts(self.experiment.id, facts)
        return f"{self.experiment.id}: done"


def _in_reach(bench: Bench, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Cells whose weights there are, or that need none; where the last loss was not reached, the best stand for it."""
    for cell in cells:
        here = bench.checkpoints(cell.fit)
        if cell.loss in here or not cell.sees_network:
            yield cell
        elif cell.loss == cell.fit.milestones[-1] and None in here and bench.results.out_of_reach(cell):
            yield replace(cell, loss=None)


def describe(record: Record) -> str:
    """A finished cell in one line."""
    score = record.score
    rates = f"accurate {score.accurate.value:6.1%}  approximate {score.approximate.value:6.1%}"
    return f"{' '.join(map(str, record.cell.values()))}: {rates}  {score.mean_psnr:.1f} dB  {record.seconds:.1f} s"
