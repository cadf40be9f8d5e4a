"""The jobs of a run: a training with all cells that need its weights, an experiment's pictures, its facts."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.auditing import record_of, recover
from recollect.auditing.generic_baseline import prior_facts
from recollect.auditing.model_facts import train_loss
from recollect.auditing.model_identity import weights_hash
from recollect.degradation import Degradation, Observation
from recollect.diffusion import can_open_priors
from recollect.distributed.jobs import Budget, Shared, Task
from recollect.engine import ARITHMETIC_IMAGES, arithmetic_of
from recollect.images import Images
from recollect.methods import Blind
from recollect.paper.answers import CycleErrors, both_answers, unpasting
from recollect.paper.cells import SEED, Cell, Fit
from recollect.paper.experiment import Experiment, Pictures
from recollect.paper.fit import is_trained, training_task
from recollect.paper.origin import origin
from recollect.paper.scales import Scale
from recollect.paper.stale import AtHand, check_checkpoints, set_aside_stale
from recollect.paper.workspace import Workspace
from recollect.records import Record, save_arrays

MASKS_TOGETHER = 2000  # images: larger sets fill a GPU alone, and their masks together a laptop's memory


@dataclass(frozen=True)
class MeasureCells:
    """Train if weights are needed, then measure the cells without a record, lowest loss first."""

    workspace: Workspace
    fit: Fit
    cells: Sequence[Cell]
    has_pictures: bool = False  # pictures of its weights are still to be computed
    masks_together: int = MASKS_TOGETHER  # the masks of a set of at most so many images are measured in one batch
    of_training: Sequence[Cell] = ()  # also what other jobs measure with the same weights
    needed: Collection[float] | None = None  # losses whose weights are kept; None: of all milestones

    def __call__(self, budget: Budget) -> Iterator[Task]:
        missing = self._missing()
        needs_weights = self._needs_weights(missing)
        if not missing and not needs_weights:
            return
        images = {part: Shared(partial(self.workspace.images, self.fit, part)) for part in self.fit.images.parts}
        if needs_weights and not is_trained(self.workspace, self.fit, self.needed):
            yield self._training(images["train"], budget)
            missing = self._missing()
        elif needs_weights:
            check_checkpoints(self.workspace, self.fit, images["train"].value.hash)
        models = _Models(self.workspace, self.fit)
        for batch in self._batches(missing):
            inputs = (batch, models.of(batch[0]), images["train"], images[batch[0].set], self.workspace.device)
            yield Task(_batch_name(batch), measure, inputs, self._keep)

    def _missing(self) -> list[Cell]:
        return [cell for cell in self.cells if self.workspace.store.is_missing(cell)]

    def _training(self, images: Shared[Images], budget: Budget) -> Task:
        """Train; cells of an earlier training with other weights are then measured again."""
        task = training_task(self.workspace, self.fit, images, budget, self.needed)

        def keep(facts: dict[str, Any]) -> str:
            line = task.keep(facts)
            moved = set_aside_stale(AtHand(self.workspace), self.fit, self.of_training or self.cells)
            if not moved:
                return line
            self.workspace.store.add_training(self.fit, facts)  # the cells will be of this training alone
            return f"{line}\n{moved}"

        return replace(task, keep=keep)

    def _needs_weights(self, missing: Sequence[Cell]) -> bool:
        """Return whether to train: for pictures, for cells, or because the training itself was asked for."""
        if self.has_pictures or any(cell.sees_network for cell in missing):
            return True
        asked_for = not self.cells or any(cell.sees_network for cell in self.cells)
        return not missing and asked_for and not self.workspace.store.has_finished(self.fit)

    def _batches(self, missing: Sequence[Cell]) -> Iterator[tuple[Cell, ...]]:
        """Group the cells that can be measured now; those of a group differ in their mask alone."""
        unique: dict[str, Cell] = {}  # the generic method's record serves every loss
        for cell in _with_weights(self.workspace, missing):
            if not self.workspace.store.has(cell):
                unique.setdefault(cell.key, cell)
        groups: dict[object, list[Cell]] = {}
        for cell in sorted(unique.values(), key=lambda cell: cell.loss or 0.0):
            alone = cell.mask if self._is_large(cell) else None
            groups.setdefault((_but_mask(cell), alone), []).append(cell)
        for group in groups.values():
            yield from self._as_begun(group)

    def _as_begun(self, missing: list[Cell]) -> Iterator[tuple[Cell, ...]]:
        """Measure a batch as a whole that was cut off while its records were written.

        Rounding differs with the batch. A killed run gives the bits of a run that was not, if its batches are the same.
        """
        for masks in self._batches_begun(missing[0]):
            if any(cell.mask in masks for cell in missing):
                yield tuple(replace(missing[0], mask=mask) for mask in masks)
                missing = [cell for cell in missing if cell.mask not in masks]
        if missing:
            yield tuple(missing)

    def _batches_begun(self, cell: Cell) -> list[tuple[str, ...]]:
        """List the masks that were measured together, of records that differ from this cell in their mask alone."""
        store = self.workspace.store
        others = [other for other in map(store.cell_or_best, self.cells) if _but_mask(other) == _but_mask(cell)]
        records = [record for other in others if (record := store.find(other))]
        return list(dict.fromkeys(tuple(record.provenance.get("together", ())) for record in records))

    def _is_large(self, cell: Cell) -> bool:
        return (cell.most_attacked or cell.fit.images.count) > self.masks_together

    def _keep(self, records: Sequence[Record]) -> str:
        for record in records:
            self.workspace.store.add(record)
        return "\n".join(describe(record) for record in records)


class _Models:
    """The networks of one training and the prior of its images, each sent to a machine once."""

    def __init__(self, workspace: Workspace, fit: Fit) -> None:
        self._workspace, self._fit = workspace, fit
        self._prior: Shared[torch.nn.Module] = Shared(partial(workspace.prior, fit.images))
        self._networks: dict[float | None, Shared[torch.nn.Module]] = {}

    def of(self, cell: Cell) -> Shared[torch.nn.Module] | None:
        if cell.needs_prior:
            return self._prior
        if not cell.sees_network:
            return None
        if cell.loss not in self._networks:
            self._networks[cell.loss] = Shared(partial(self._workspace.network, self._fit, cell.loss))
        return self._networks[cell.loss]


def _but_mask(cell: Cell) -> Cell:
    return replace(cell, mask="")


def _batch_name(cells: Sequence[Cell]) -> str:
    if len(cells) == 1:
        return str(cells[0])
    return f"{cells[0]} and {len(cells) - 1} more masks"


def _with_weights(workspace: Workspace, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the cells whose weights exist or that need none; the best weights replace a last loss not reached."""
    for cell in cells:
        saved = workspace.checkpoints(cell.fit)
        if cell.loss in saved or not cell.sees_network:
            yield cell
        elif cell.is_at_last_loss and None in saved and workspace.store.was_not_reached(cell):
            yield replace(cell, loss=None)


def measure(
    cells: Sequence[Cell], model: torch.nn.Module | None, train: Images, images: Images, device: torch.device
) -> list[Record]:
    """Measure cells that differ in their mask alone, on any machine; `model` is the network, the prior or nothing.

    They are recovered as one batch: the few images of each mask that take many rounds then keep a GPU busy together.
    """
    first = cells[0]
    images, model = first.select_attacked(images), model and model.to(device)
    method, size = first.build_method(model), len(images)
    observations = [cell.observe(images) for cell in cells]
    cycles = CycleErrors(images.pixels.repeat(len(cells), 1, 1, 1)) if isinstance(method, Blind) else None
    began = time.monotonic()
    recovery = recover(unpasting(method), model if first.sees_network else None, _joined(observations), trace=cycles)
    seconds = time.monotonic() - began
    facts = _facts_about(first, model, method, train, images, device)
    if len(cells) > 1:
        facts["together"] = [cell.mask for cell in cells]
    records = []
    for i, share in enumerate(shares(recovery.steps, size)):
        part, seen, cell = recovery[i * size : (i + 1) * size], observations[i], cells[i]
        answers = both_answers(method, part, seen)
        record = record_of(
            replace(part, estimate=answers.own), images, seen, method, cell.identity, cell.settings, facts,
            seconds * share,
        )  # fmt: skip
        own_cycles = cycles.rows(part, i * size) if cycles else None
        errors: dict[str, Any] = answers.other_errors(images.pixels)
        records.append(replace(record, cycles=own_cycles, **errors))
    return records


def _joined(observations: Sequence[Observation]) -> Observation:
    truth = Degradation.join([seen.truth.expand(seen.y) for seen in observations])
    return Observation(torch.cat([seen.y for seen in observations]), truth, observations[0].noise_std)


def shares(steps: Tensor, size: int) -> list[float]:
    """Divide the work among groups of `size` images by their steps; without steps, equally."""
    work = (steps.double() + 1).view(-1, size).sum(1)
    return (work / work.sum()).tolist()


def _facts_about(
    cell: Cell, model: torch.nn.Module | None, method: Any, train: Images, images: Images, device: torch.device
) -> dict[str, Any]:
    """Collect what has to be known of the model and the images to judge a cell."""
    own: dict[str, Any] = {"images": {"hash": images.hash, "count": len(images)}}
    if cell.needs_prior:
        own["prior"] = prior_facts({cell.method: method}, {cell.set: images})
    if model is None:
        device = torch.device("cpu")  # where methods without a model compute
    if model is None or not cell.sees_network:
        return origin(device, **own, seed=SEED, precision="float32")
    own |= _network_facts(model, train)
    if cell.set != "train":
        own["unseen_loss"] = _loss(model, images)
    return origin(device, **own, seed=cell.fit.seed)


@lru_cache(maxsize=1)  # the cells of one network follow each other
def _network_facts(f: torch.nn.Module, train: Images) -> dict[str, Any]:
    return {
        "train_loss": _loss(f, train),
        "model": weights_hash(f),
        "precision": arithmetic_of(f, train[:ARITHMETIC_IMAGES].pixels),
    }


def _loss(f: torch.nn.Module, images: Images) -> float:
    return float(f"{train_loss(f, images):.4g}")


@dataclass(frozen=True)
class ComputePictures:
    """Compute the pictures of an experiment once, into the work folder."""

    workspace: Workspace
    experiment: Experiment
    scale: Scale

    @property
    def fit(self) -> Fit | None:
        """The training whose weights are needed; None if there is nothing to compute or no weights are needed."""
        pictures = self._missing_pictures
        if pictures is None or not pictures.needs_weights:
            return None
        return pictures.fit(self.scale)

    @property
    def _missing_pictures(self) -> Pictures | None:
        pictures = self.experiment.pictures
        if pictures is None or self.workspace.pictures(self.experiment.name).exists():
            return None
        if pictures.needs_prior and not can_open_priors():
            return None
        return pictures

    def __call__(self, _budget: Budget) -> Iterator[Task]:
        pictures = self._missing_pictures
        if pictures is None:
            return
        if self.fit is None or is_trained(self.workspace, self.fit, self.fit.milestones[-1:]):
            inputs = (self.workspace, self.scale, pictures.fit(self.scale))
            yield Task(f"{self.experiment.name}: pictures", pictures.compute, inputs, self._keep)

    def _keep(self, arrays: Mapping[str, np.ndarray]) -> str:
        path = self.workspace.pictures(self.experiment.name)
        save_arrays(path, arrays)
        return f"{self.experiment.name}: pictures are in {path}"


@dataclass(frozen=True)
class ComputeFacts:
    """Compute an experiment's results that are neither cells nor pictures, as one JSON file."""

    workspace: Workspace
    experiment: Experiment
    scale: Scale

    def __call__(self, _budget: Budget) -> Iterator[Task]:
        compute = self.experiment.facts
        if compute is None or self.workspace.store.has_facts(self.experiment.name):
            return
        trainings = self.experiment.trainings(self.scale)
        if all(is_trained(self.workspace, fit, fit.milestones[-1:]) for fit in trainings):
            yield Task(f"{self.experiment.name}: facts", compute, (self.workspace, self.scale), self._keep)

    def _keep(self, facts: dict[str, Any]) -> str:
        self.workspace.store.add_facts(self.experiment.name, facts)
        return f"{self.experiment.name}: done"


def describe(record: Record) -> str:
    """Describe a finished cell in one line."""
    score = record.score
    rates = f"accurate {score.accurate.value:6.1%}  approximate {score.approximate.value:6.1%}"
    return f"{' '.join(map(str, record.cell.values()))}: {rates}  {score.mean_psnr:.1f} dB  {record.seconds:.1f} s"
