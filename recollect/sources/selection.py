"""Which images of a catalogue a source address asks for: seeded, balanced, train and control apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.errors import InputError
from recollect.sources.address import Address
from recollect.sources.base import Catalogue


@dataclass(frozen=True)
class _Ranked:
    """Positions that may be drawn, each with its class and its seeded rank in that class."""

    positions: np.ndarray
    keys: np.ndarray
    classes: np.ndarray
    ranks: np.ndarray
    sizes: np.ndarray  # of the image's class, for each image
    from_front: bool  # train is taken from the front, control from the back


def draw(catalogue: Catalogue, address: Address) -> np.ndarray:
    """Return the positions asked for: train from one end of a seeded order, control from the other.

    So sets of one seed nest (the first 20 of `count=40` are `count=20`), and a train and a control set share
    nothing as long as together they are no more than the whole.
    """
    drawable = _drawable(catalogue, address.seed)
    if catalogue.parts is not None:
        drawable = drawable[np.asarray(catalogue.parts)[drawable] == address.part]
    if not address.drawn:
        return _all(drawable, catalogue, address)
    ranked = _rank(drawable, catalogue, address)
    if address.per_class is None:
        return _of_all(ranked, catalogue, address)
    if catalogue.labels is None:
        raise InputError(f"{address.source} has no classes, so per-class means nothing here; use count.")
    return _of_each_class(ranked, catalogue, address)


def seeded_keys(ids: Sequence[str], seed: int) -> np.ndarray:
    """Return a number for each image, by which a draw is ordered.

    It comes from the image's id alone, so a draw depends neither on the order of files nor on a library's version.
    """
    digests = (hashlib.sha256(f"{seed}/{i}".encode("utf-8", "surrogateescape")).digest()[:8] for i in ids)
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def _drawable(catalogue: Catalogue, seed: int) -> np.ndarray:
    """Return positions that may be drawn: one of each group, the first in the seeded order."""
    if catalogue.groups is None:
        return np.arange(len(catalogue.ids))
    order = np.argsort(seeded_keys(catalogue.ids, seed), kind="stable")
    _, first = np.unique(np.asarray(catalogue.groups)[order], return_index=True)
    return np.sort(order[first])


def _all(drawable: np.ndarray, catalogue: Catalogue, address: Address) -> np.ndarray:
    if address.part != "train" and catalogue.parts is None:
        raise InputError(
            f"{address.source} was asked for its control part but not for how many, and train without a number is "
            f"all {len(drawable)} images; add count=N (at most {len(drawable) // 2}) or per-class=N to both."
        )
    return drawable


def _rank(drawable: np.ndarray, catalogue: Catalogue, address: Address) -> _Ranked:
    labels = np.zeros(len(drawable))
    if catalogue.labels is not None:
        labels = np.asarray(catalogue.labels)[drawable]
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    keys = seeded_keys([catalogue.ids[p] for p in drawable], address.seed)
    order = np.lexsort((keys, classes))
    ranks = np.empty(len(drawable), np.int64)
    ranks[order] = np.arange(len(drawable)) - (np.cumsum(counts) - counts)[classes[order]]
    from_front = catalogue.parts is not None or address.part == "train"
    return _Ranked(drawable, keys, classes, ranks, counts[classes], from_front)


def _of_all(ranked: _Ranked, catalogue: Catalogue, address: Address) -> np.ndarray:
    """Draw `count` images: every class in proportion, or every class alike where the source keeps two parts."""
    count, whole = address.count or 0, len(ranked.positions)
    room, why = whole, ""
    if not ranked.from_front:
        room, why = whole // 2, f", so that train can have as many of the {whole}"
    if count > room:
        raise InputError(f"{address} asks for {count} images; it can have {room} at most{why}. Ask for fewer.")
    share = ranked.ranks
    if catalogue.parts is None:
        # The half makes the order read the same from both ends: front and back hold the classes in the same shares.
        share = (ranked.ranks + 0.5) / ranked.sizes
    order = ranked.positions[np.lexsort((ranked.keys, share))]
    if not ranked.from_front:
        order = order[::-1]
    return order[:count]


def _of_each_class(ranked: _Ranked, catalogue: Catalogue, address: Address) -> np.ndarray:
    """Draw the same number of every class, one of each in turn."""
    number = address.per_class or 0
    room, rank = ranked.sizes, ranked.ranks
    if not ranked.from_front:
        room, rank = ranked.sizes // 2, ranked.sizes - 1 - ranked.ranks
    if number > room.min():
        least = int(np.argmin(room))
        label = np.asarray(catalogue.labels)[ranked.positions[least]]
        why = "" if ranked.from_front else f", so {room[least]} at most for each of train and control"
        raise InputError(
            f"{address} asks for {number} of each class, but class {label} has {ranked.sizes[least]}{why}. "
            "Ask for fewer."
        )
    order = np.lexsort((ranked.classes, rank))
    return ranked.positions[order[: number * len(np.unique(ranked.classes))]]
