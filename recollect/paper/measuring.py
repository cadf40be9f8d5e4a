"""The jobs: a training with every cell that needs its weights, an experiment's pictures, an experiment's facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from recollect.auditing import measure
from recollect.auditing.facts import fingerprint, train_loss
from recollect.auditing.pictures import save_arrays
from recollect.degradation import Observation, mask, observe
from recollect.images import Images
from recollect.paper.experiment import Experiment
from recollect.paper.fitting import Bench, finished, train
from recollect.paper.plan import GENERIC, SEED, Cell, Fit
from recollect.paper.scales import Scale
from recollect.priors import can_open_priors
from recollect.records import Record, provenance
from recollect.sweep import Budget


@dataclass(frozen=True)
class Measure:
    """Train if that is needed, then measure the cells that have no record yet; lowest loss first."""

    bench: Bench
    fit: Fit
    cells: Sequence[Cell]

    def __call__(self, budget: Budget) -> Iterator[str]:
        results = self.bench.results
        pending = [cell for cell in self.cells if results.missing(cell)]
        if not can_open_priors() and any(not cell.sees_network for cell in pending):
            pending = [cell for cell in pending if cell.sees_network]
            yield f"{self.fit.name}: {GENERIC} is left out here, since it needs diffusers"
        done = results.training(self.fit)
        if not pending and done and done["finished"]:
            return
        if not finished(self.bench, self.fit):
            yield train(self.bench, self.fit, self._sets["train"], budget)
        yield from self._measure([cell for cell in _in_reach(self.bench, pending) if not results.has(cell)])

    def _measure(self, cells: Sequence[Cell]) -> Iterator[str]:
        order = sorted(cells, key=lambda c: c.loss or 0.0)  # stable: masks and methods stay in their order
        for loss in dict.fromkeys(cell.loss for cell in order):
            f = self.bench.weights(self.fit, loss)
            about = self._about(f)
            seen: dict[tuple[str, str, float], Observation] = {}
            for cell in (c for c in order if c.loss == loss):
                place = cell.set, cell.mask, cell.noise_std
                if place not in seen:
                    seen = {place: self._observe(cell)}  # only one: large sets take gigabytes
                images = self._sets[cell.set]
                where = {**about, "images": {"hash": images.hash, "count": len(images)}}
                record, _ = measure(
                    f, images, seen[place], cell.settled_method(self.bench.device), cell.identity, cell.settings, where
                )
                self.bench.results.add(record)
                yield describe(record)

    def _observe(self, cell: Cell) -> Observation:
        images = self._sets[cell.set]
        truth = mask(cell.mask, images.shape, count=len(images), seed=SEED)
        return observe(images, truth, noise_std=cell.noise_std, seed=SEED)

    def _about(self, f: torch.nn.Module) -> dict[str, object]:
        images = self._sets["train"]
        loss = train_loss(f, images)
        return provenance(self.bench.device, train_loss=float(f"{loss:.4g}"), model=fingerprint(f, images))

    @cached_property
    def _sets(self) -> dict[str, Images]:
        return _Sets(self.bench, self.fit)


@dataclass(frozen=True)
class TakePictures:
    """The pictures of an experiment, taken once and kept in the work folder."""

    bench: Bench
    experiment: Experiment
    scale: Scale

    def __call__(self, budget: Budget) -> Iterator[str]:
        pictures, path = self.experiment.pictures, self.bench.pictures(self.experiment.id)
        if pictures is None or path.exists():
            return
        if pictures.needs_prior and not can_open_priors():
            yield f"{self.experiment.id}: left out here, since it needs diffusers"
            return
        fit = pictures.fit(self.scale)
        if not finished(self.bench, fit):
            yield train(self.bench, fit, self.bench.images(fit, "train"), budget)
        if finished(self.bench, fit):
            save_arrays(path, pictures.take(self.bench, self.scale, fit))
            yield f"{self.experiment.id}: pictures are in {path}"


@dataclass(frozen=True)
class FindFacts:
    """What an experiment finds that is neither a cell nor a picture, as one JSON."""

    bench: Bench
    experiment: Experiment
    scale: Scale

    def __call__(self, _budget: Budget) -> Iterator[str]:
        find, results = self.experiment.facts, self.bench.results
        if find is not None and results.facts(self.experiment.id) is None:
            results.add_facts(self.experiment.id, find(self.bench, self.scale))
            yield f"{self.experiment.id}: done"


class _Sets(dict[str, Images]):
    """The images by set, loaded when they are first asked for."""

    def __init__(self, bench: Bench, fit: Fit) -> None:
        super().__init__()
        self._bench, self._fit = bench, fit

    def __missing__(self, part: str) -> Images:
        self[part] = self._bench.images(self._fit, part)
        return self[part]


def _in_reach(bench: Bench, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Cells whose weights there are; where the last loss was not reached, the best weights stand for it."""
    for cell in cells:
        here = bench.checkpoints(cell.fit)
        if cell.loss in here:
            yield cell
        elif cell.loss == cell.fit.milestones[-1] and None in here and bench.results.out_of_reach(cell):
            yield replace(cell, loss=None)


def describe(record: Record) -> str:
    """A finished cell in one line."""
    score = record.score
    rates = f"accurate {score.accurate.value:6.1%}  approximate {score.approximate.value:6.1%}"
    return f"{' '.join(map(str, record.cell.values()))}: {rates}  {score.mean_psnr:.1f} dB  {record.seconds:.1f} s"
