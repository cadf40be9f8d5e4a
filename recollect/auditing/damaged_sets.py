"""Training and unseen images under every mask: what each method is tried on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.degradation import Degradation, Erasure, Filled, degradation, fill_erased
from recollect.errors import InputError
from recollect.images import Images, check_alike
from recollect.scoring import ACCURATE, mse
from recollect.sources import control_of, load

FEW = 16  # images on which damage is tried


@dataclass(frozen=True, eq=False)
class DamagedSet:
    """One set of images with the true damage of one mask."""

    set: str  # "train" or "control"
    mask: str
    images: Images
    truth: Degradation

    @property
    def black(self) -> bool:
        """Whether erased pixels are zero, so that the zeros of an image may give the mask away."""
        return isinstance(self.truth, Erasure) and not isinstance(self.truth, Filled)

    def without(self, ids: Sequence[str]) -> DamagedSet:
        """Leave these images out, with the masks that are theirs alone."""
        left_out = set(ids)
        stay = np.array([name not in left_out for name in self.images.ids])
        return replace(self, images=self.images[stay], truth=self.truth.of_images(stay))


def load_sets(train: Any, control: Any) -> dict[str, Images]:
    """Load training and, where given or named by `train` too, control images; both must have the same size."""
    if control is None and isinstance(train, (str, Path)):
        control = control_of(train)
    elif isinstance(control, (str, Path)):
        control = control_of(control) or control  # of a record its control part, not the train part
    sets = {"train": _images(train, "train")}
    if control is not None:
        sets["control"] = _images(control, "control")
        check_alike(sets["train"], sets["control"])
    return sets


def damage(sets: Mapping[str, Images], masks: Mapping[str, Any], fills: Sequence[str], seed: int) -> list[DamagedSet]:
    """Put every set under every mask with every fill; a mask that does not fit is refused."""
    damaged: list[DamagedSet] = []
    for set_name, images in sets.items():
        for name, mask in masks.items():
            damaged += _under_mask(set_name, images, name, mask, fills, seed)
    erases = any(isinstance(one.truth, Erasure) for one in damaged)
    if not erases and any(fill != "zero" for fill in fills):
        raise InputError(f"A fill is what erased pixels hold, and {', '.join(masks)} erase no pixel: leave it out.")
    return damaged


def leave_out(damaged: Sequence[DamagedSet], set_name: str, ids: Sequence[str]) -> list[DamagedSet]:
    """Leave these images of one set out; images of another set have ids of their own and all stay."""
    if not ids:
        return list(damaged)
    images: dict[str, Images] = {}
    kept = []
    for one in damaged:
        if one.set == set_name:
            one = one.without(ids)
        one = replace(one, images=images.setdefault(one.set, one.images))  # one copy for all masks
        kept.append(one)
    return kept


def _under_mask(
    set_name: str, images: Images, name: str, mask: Any, fills: Sequence[str], seed: int
) -> Iterator[DamagedSet]:
    truth = degradation(mask, images.shape, count=len(images), seed=seed, columns=images.columns)
    try:
        truth.expand(images[:1].pixels.expand(len(images), *images.shape))
    except InputError as error:
        raise InputError(f"Mask {name!r} does not fit the {set_name} images: {error}") from None
    if not isinstance(truth, Erasure):
        _check_changes_some(name, truth, images)
        yield DamagedSet(set_name, name, images, truth)
        return
    _check_erases_some(name, truth, set_name)
    for fill in fills:
        label = name if fill == "zero" else f"{name}+{fill}"
        yield DamagedSet(set_name, label, images, fill_erased(truth, images, fill, seed))


def _check_changes_some(name: str, truth: Degradation, images: Images) -> None:
    """Refuse damage such as blur:0, after which all of the first images would count as recovered as they are."""
    first = images[:FEW]
    damaged = truth.of_images(slice(len(first))).apply(first.pixels)
    if bool((mse(damaged, first.pixels) < ACCURATE).all()):
        raise InputError(f"Mask {name!r} changes nothing, so there is nothing to recover; take stronger damage.")


def _check_erases_some(name: str, truth: Erasure, set_name: str) -> None:
    """Refuse masks that leave an image whole, which would count as recovered, or leave nothing of it."""
    kept = truth.keep.flatten(1)
    for outcome, affected, why in (
        ("nothing", kept.all(1), "there is nothing to recover"),
        ("everything", ~kept.any(1), "there is nothing to recover an image from"),
    ):
        count, of = int(affected.sum()), len(affected)
        if not count:
            continue
        images = "" if of == 1 else f" of {count} of the {of} {set_name} images"
        raise InputError(f"Mask {name!r} erases {outcome}{images}, so {why}; take another mask or larger images.")


def _images(source: Any, name: str) -> Images:
    if isinstance(source, (str, Path)):
        return load(source)
    return Images.of(source, name=name)
