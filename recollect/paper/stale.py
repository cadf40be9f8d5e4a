"""Records of other images, weights or priors than those at hand: they are moved aside and measured again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.auditing.model_identity import weights_hash
from recollect.checkpoints import load_checkpoint_about
from recollect.errors import InputError
from recollect.images import Images
from recollect.paper.cells import Cell, Fit, ImageSet
from recollect.paper.fit import is_paused
from recollect.paper.store import Store, is_current
from recollect.paper.workspace import Workspace
from recollect.records import Record


@dataclass(frozen=True)
class AtHand:
    """Identifies the images, networks and priors that a run would use now; None stands for what is not at hand."""

    workspace: Workspace
    _images: dict[tuple[ImageSet, str], Images | None] = field(default_factory=dict)  # large sets load slowly

    def images(self, fit: Fit, part: str) -> Images | None:
        if (fit.images, part) not in self._images:
            self._images[fit.images, part] = self._load(fit, part)
        return self._images[fit.images, part]

    def _load(self, fit: Fit, part: str) -> Images | None:
        try:
            return self.workspace.images(fit, part)
        except InputError:  # records can be read where the data set is not; what needs it says so
            return None

    def network(self, cell: Cell) -> str | None:
        if cell.loss not in self.workspace.checkpoints(cell.fit) or is_paused(self.workspace, cell.fit):
            return None
        return weights_hash(self.workspace.network(cell.fit, cell.loss))

    def prior(self, cell: Cell) -> dict[str, str] | None:
        if not cell.needs_prior or not self.workspace.has_prior(cell.fit.images):
            return None
        prior = self.workspace.prior(cell.fit.images)
        return {"weights": prior.weights_hash, "hash": prior.hash}


def set_aside_stale(at_hand: AtHand, fit: Fit, cells: Sequence[Cell]) -> str:
    """Move records of a training that do not belong to what is at hand; say what was moved, why and where."""
    store = at_hand.workspace.store
    reasons = _Reasons(at_hand)
    stale = {record.key: why for cell, record in _recorded_cells(store, cells) if (why := reasons.of(cell, record))}
    training_is_stale = _is_of_other_images(at_hand, fit)
    if not stale and not training_is_stale:
        return ""
    aside = store.set_aside(stale, fit if training_is_stale else None)
    counts = [f"{count} of its cells were {reason}" for reason, count in Counter(stale.values()).items()]
    if training_is_stale:
        counts.append("it was trained on other images")
    return f"{fit.name}: {', '.join(counts)}; these records are now in {aside}, and are measured again."


def _recorded_cells(store: Store, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Record]]:
    """Yield the records of cells, those of the best weights too, and those of earlier settings and versions."""
    for cell in cells:
        for one in (cell, replace(cell, loss=None)) if cell.is_at_last_loss else (cell,):
            for record in (store.find(one), store.find_earlier(one)):
                if record is not None:
                    yield one, record


def check_checkpoints(workspace: Workspace, fit: Fit, images_hash: str) -> None:
    """Refuse checkpoints of a training on other images than those at hand."""
    for path in workspace.checkpoints(fit).values():
        if load_checkpoint_about(path).get("data_hash") != images_hash:
            raise InputError(
                f"{path} was trained on other images than those of {fit.images.name} now; remove the folder "
                f"{path.parent}, or give another --work."
            )


@dataclass(frozen=True)
class _Reasons:
    """Finds why records do not belong to what is at hand; networks and priors are identified once."""

    at_hand: AtHand
    _models: dict[object, Any] = field(default_factory=dict)

    def of(self, cell: Cell, record: Record) -> str:
        attacked = self._attacked_hash(cell)
        if attacked is not None and _recorded(record, "images", "hash") not in (None, attacked):
            return "measured on other images"
        if not cell.sees_network:
            prior = self._once(cell.method, lambda: self.at_hand.prior(cell)) or {}
            if any(_recorded(record, "prior", name) not in (None, value) for name, value in prior.items()):
                return "measured with another prior"
        elif self.at_hand.workspace.store.has_finished(cell.fit) and not is_current(record.provenance):
            return "measured with an earlier version"
        elif self._once(cell.loss, lambda: self.at_hand.network(cell)) not in (None, record.provenance.get("model")):
            return "measured with other weights"
        return ""

    def _attacked_hash(self, cell: Cell) -> str | None:
        images = self.at_hand.images(cell.fit, cell.set)
        if images is None:
            return None
        return str(self._once((cell.set, cell.most_attacked), lambda: cell.select_attacked(images).hash))

    def _once(self, name: object, identify: Callable[[], Any]) -> Any:
        if name not in self._models:
            self._models[name] = identify()
        return self._models[name]


def _is_of_other_images(at_hand: AtHand, fit: Fit) -> bool:
    facts = at_hand.workspace.store.training(fit)
    images = at_hand.images(fit, "train") if facts else None
    return facts is not None and images is not None and facts["images"]["hash"] != images.hash


def _recorded(record: Record, part: str, name: str) -> Any:
    """Read what a record says of the images or the prior; None where it says nothing."""
    return (record.provenance.get(part) or {}).get(name)
