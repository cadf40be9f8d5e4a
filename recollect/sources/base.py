"""What every source of images is: what it says of itself, and the list of the images it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from recollect.registry import Registry
from recollect.sources.address import Address

Progress = Callable[[int, int], None]  # how many are done, of how many
Read = Callable[[np.ndarray, Progress], np.ndarray]  # positions -> N x C x H x W, 8-bit or in [0, 1]


def quiet(_done: int, _total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Catalogue:
    """The images of a source, listed but not yet read."""

    ids: Sequence[str]
    read: Read
    labels: Sequence[str] | None = None  # the class of each image
    groups: Sequence[object] | None = None  # images of one group show the same thing: at most one of them is drawn
    parts: Sequence[str] | None = None  # "train" or "control", where the source itself keeps the two apart


@dataclass(frozen=True)
class Archive:
    """One official file: its address, its checksum, and its path inside the cache folder."""

    url: str
    md5: str
    path: str
    megabytes: int


@dataclass(frozen=True)
class Source:
    """Where images come from: one file in this folder that holds one of these."""

    name: str
    summary: str  # one line for help and docs
    example: str  # a source address that works
    open: Callable[[Path, Address], Catalogue]
    path: str = ""  # what PATH stands for; empty when the source takes none
    suffixes: tuple[str, ...] = ()  # a path that ends so and names no source is of this one
    archives: tuple[Archive, ...] = ()  # what `recollect data fetch` downloads; PATH may then be left out
    parameters: tuple[str, ...] = ()  # parameters that only this source has
    defaults: Mapping[str, str] = field(default_factory=dict)  # values of parameters that are left out
    order: int = 100  # position in help


SOURCES: Registry[Source] = Registry("source", "recollect.sources", Source)
