"""What every source of images is: what it says of itself, and the list of the images it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from recollect.images.image_files import Progress
from recollect.registry import Registry
from recollect.sources.address import Address

Read = Callable[[np.ndarray, Progress], np.ndarray]  # positions -> images, signals or rows, 8-bit or in [0, 1]


@dataclass(frozen=True)
class Catalogue:
    """The images of a source, listed but not yet read.

    Args:
        ids: A different name for each image.
        read: Takes positions and a function for progress, and returns images, signals or rows: 8-bit, or in [0, 1].
        labels: The class of each image.
        groups: Images of one group show the same thing: at most one of them is drawn.
        parts: "train" or "control" for each image, if the source itself keeps the two apart.
        columns: Names of the columns of rows.
        in_place: Whether some images are read without the others: a large set may stay on disk.
        may_grow: Whether files may unpack to more than their own size.
        refuses_bits: Whether 8-bit values of only 0 and 1 are taken for a mistake.
        sha256: The hash of the whole of each part, if a record states it.

    Examples:
        >>> import numpy as np
        >>> from recollect.sources import Catalogue
        >>> black = Catalogue(["a", "b"], lambda positions, progress: np.zeros((len(positions), 1, 8, 8), np.uint8))
        >>> len(black.ids)
        2
    """

    ids: Sequence[str]
    read: Read
    labels: Sequence[str] | None = None  # the class of each image
    groups: Sequence[object] | None = None  # images of one group show the same thing: at most one of them is drawn
    parts: Sequence[str] | None = None  # "train" or "control", where the source itself keeps the two apart
    columns: Sequence[str] = ()  # the names of the columns of rows
    in_place: bool = False  # some images are read without the others: a large set may stay on disk
    may_grow: bool = True  # files may unpack to more than their own size
    refuses_bits: bool = False  # 8-bit values of only 0 and 1 are taken for a mistake
    sha256: Mapping[str, str] = field(default_factory=dict)  # of the whole of each part, where a record states it


@dataclass(frozen=True)
class Archive:
    """One official file: its address, its checksum, and its path inside the cache folder."""

    url: str
    md5: str
    path: str
    megabytes: int


@dataclass(frozen=True)
class Source:
    """Where images come from: one file in this folder that holds one of these.

    Args:
        name: The name in a source address.
        summary: One line for help and docs.
        example: A source address that works.
        open: Takes the path and the address, and returns a `Catalogue`.
        path: What PATH stands for; empty when the source takes none.
        suffixes: A path that ends so and names no source is of this one.
        archives: Files that `recollect data fetch` downloads; PATH may then be left out.
        parameters: Parameters that only this source has.
        defaults: Values of parameters that are left out.
        claims: Whether a text that names no source is of this one.
        runs_code: Whether it runs code that the address names, so that no file may name it.
        holds_control: Whether an address names a train and a control set.
        order: Position in help.

    Examples:
        >>> from recollect.sources import SOURCES
        >>> SOURCES["array"].suffixes
        ('.npy', '.npz', '.safetensors')
    """

    name: str
    summary: str  # one line for help and docs
    example: str  # a source address that works
    open: Callable[[Path, Address], Catalogue]
    path: str = ""  # what PATH stands for; empty when the source takes none
    suffixes: tuple[str, ...] = ()  # a path that ends so and names no source is of this one
    archives: tuple[Archive, ...] = ()  # what `recollect data fetch` downloads; PATH may then be left out
    parameters: tuple[str, ...] = ()  # parameters that only this source has
    defaults: Mapping[str, str] = field(default_factory=dict)  # values of parameters that are left out
    claims: Callable[[str], bool] = lambda _text: False  # whether a text that names no source is of this one
    runs_code: bool = False  # it runs code that the address names, so that no file may name it
    holds_control: bool = False  # an address names a train and a control set
    order: int = 100  # position in help


SOURCES: Registry[Source] = Registry("source", "recollect.sources", Source)
