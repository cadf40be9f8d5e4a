"""A train and a control set, and a record from which both can be made and checked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.counting import counted
from recollect.errors import InputError
from recollect.sources.address import PARTS, Address, parse
from recollect.sources.base import SOURCES, Catalogue, Progress
from recollect.sources.conversion import Conversion
from recollect.sources.open_source import load, location_of, open_catalogue, read

if TYPE_CHECKING:
    from recollect.images import Images


@dataclass(frozen=True)
class Split:
    """Images to train on, and images of the same kind never to be trained on."""

    train: Images
    control: Images

    def __post_init__(self) -> None:
        from recollect.images import check_alike  # imports torch

        check_alike(self.train, self.control)

    def record(self) -> dict[str, Any]:
        """Return what `reproduce` and `verify` need: plain values that can be written as JSON."""
        return {part: _record(getattr(self, part)) for part in PARTS}

    def verify(self, record: Mapping[str, Any]) -> None:
        """Refuse unless these are the images of the record: the same ids in the same order, the same pixels."""
        for part in PARTS:
            images, expected = getattr(self, part), _entry(record, part)
            if list(images.ids) != list(expected["ids"]):
                raise InputError(f"The {part} set is another than the record's: {_difference(images.ids, expected)}.")
            if images.hash != expected["sha256"]:
                raise InputError(
                    f"The {part} set has the ids of the record but other pixels: sha256 {images.hash[:12]} instead of "
                    f"{expected['sha256'][:12]}. The files have changed since, or were decoded differently."
                )


def split(train: str, control: str | None = None, *, progress: Progress | None = None) -> Split:
    """Load the train set of a source address and its control set (by default the same with part=control)."""
    address = parse(train, SOURCES)
    other = replace(address, part="control") if control is None else parse(control, SOURCES)
    same = _overlap(address, other)
    if same and address.drawn and other.drawn and address.seed != other.seed:
        raise InputError(
            f"Train has seed {address.seed} and control {other.seed}; give both the same to keep them apart."
        )
    made = Split(load(str(address), progress=progress), load(str(other), progress=progress))
    shared = set(made.train.ids) & set(made.control.ids) if same else set()
    if shared:
        raise InputError(
            f"{made.train.name} and {made.control.name} share {counted(len(shared), 'image')}, such as {min(shared)}: "
            + ("give control as part=control." if address.part == other.part else "ask for fewer of one.")
        )
    return made


def _overlap(one: Address, other: Address) -> bool:
    """Return whether both may read the same files: a source also finds its file from the folder that holds it."""
    first, second = location_of(one).resolve(), location_of(other).resolve()
    return one.source == other.source and (first.is_relative_to(second) or second.is_relative_to(first))


def reproduce(record: Mapping[str, Any], *, source: str | None = None, progress: Progress | None = None) -> Split:
    """Read the images of a record again, by their ids, and verify them; `source` is where they are now if moved."""
    train, control = (Recorded.of(record, part, source).load(progress) for part in PARTS)
    made = Split(train, control)
    made.verify(record)
    return made


@dataclass(frozen=True, eq=False)
class Recorded:
    """One part of a record, found in its source."""

    address: Address
    catalogue: Catalogue
    positions: np.ndarray

    @classmethod
    def of(
        cls, record: Mapping[str, Any], part: str, source: str | None = None, folder: Path | None = None
    ) -> Recorded:
        """Find the images of a part by their ids; `source` is where they are now if moved.

        A relative path is one in the working folder, or in this folder.
        """
        entry = _entry(record, part)
        address = parse(entry["source"], SOURCES)
        if source is not None:
            moved = parse(source, SOURCES)
            address = replace(address, source=moved.source, path=moved.path)
        elif SOURCES[address.source].runs_code or SOURCES[address.source].holds_control:
            raise InputError(f"The record names {address}, which no file may name; give that address itself.")
        address = _found_beside(address, folder)
        catalogue = open_catalogue(address)
        position_of = {name: position for position, name in enumerate(catalogue.ids)}
        missing = [name for name in entry["ids"] if name not in position_of]
        if missing:
            raise InputError(f"{address} lacks {counted(len(missing), 'image')} of the record, such as {missing[0]!r}.")
        return cls(address, catalogue, np.array([position_of[name] for name in entry["ids"]]))

    @property
    def ids(self) -> list[str]:
        return [self.catalogue.ids[position] for position in self.positions]

    def read(self, rows: np.ndarray, progress: Progress) -> np.ndarray:
        """Read the images at these positions of the record, converted as the record's own address says."""
        return Conversion.of(self.address).all(self.catalogue.read(self.positions[rows], progress))

    def load(self, progress: Progress | None) -> Images:
        return read(self.catalogue, self.positions, self.address, progress)


def _found_beside(address: Address, folder: Path | None) -> Address:
    """Return the address of a file in a folder, if the working folder has none of its name."""
    if folder is None or not address.path or location_of(address).exists():
        return address
    beside = folder / address.path
    return replace(address, path=str(beside)) if beside.exists() else address


def _record(images: Images) -> dict[str, Any]:
    return {
        "source": images.name,
        "count": len(images),
        "shape": list(images.shape),
        "sha256": images.hash,
        "ids": list(images.ids),
    }


def _entry(record: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    entry = record.get(part) if isinstance(record, Mapping) else None
    if not isinstance(entry, Mapping) or not {"source", "ids", "sha256"} <= set(entry) or not _is_list(entry["ids"]):
        raise InputError(f"The record has no whole {part!r} entry; expected source, ids and sha256 in it.")
    return entry


def _is_list(ids: object) -> bool:
    return isinstance(ids, (list, tuple)) and len(ids) > 0 and all(isinstance(name, str) for name in ids)


def _difference(ids: tuple[str, ...], expected: Mapping[str, Any]) -> str:
    """Say where two lists of ids first differ."""
    wanted = expected["ids"]
    if len(ids) != len(wanted):
        return f"{len(ids)} images instead of {len(wanted)}"
    position = next(i for i, (a, b) in enumerate(zip(ids, wanted, strict=True)) if a != b)
    return f"image {position} is {ids[position]!r} instead of {wanted[position]!r}"
