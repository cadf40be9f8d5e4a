"""Two nouns every source is made of: what it is called, and the list of what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import Tensor

from recollect.sources.address import Request

Progress = Callable[[int, int], None]  # how many are done, of how many
Read = Callable[[np.ndarray, Progress], Tensor]  # positions -> N x C x H x W, 8-bit or in [0, 1]


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True)
class Catalogue:
    """The images of a source, listed but not yet read."""

    ids: Sequence[str]
    read: Read
    labels: Sequence[str] | None = None  # the class of each image
    groups: Sequence[object] | None = None  # images of one group show the same thing: at most one of them is drawn
    sides: Sequence[str] | None = None  # "train" or "control", where the source itself keeps the two apart


@dataclass(frozen=True)
class Source:
    """One place images come from; each is one file in this folder and one line in `loading.SOURCES`."""

    name: str
    about: str  # one line for people
    example: str  # a spelling that works
    open: Callable[[Path, Request], Catalogue]
    path: str = ""  # what PATH stands for; empty when the source takes none
    cached: bool = False  # PATH may be left out once `recollect data fetch` has been run
    own: tuple[str, ...] = ()  # parameters that only this source has
    defaults: Mapping[str, str] = field(default_factory=dict)  # parameters it fills in when they are left out
