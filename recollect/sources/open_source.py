"""From a source address to images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import InputError
from recollect.files.limits import MIB, Limit
from recollect.files.names import printable
from recollect.images.image_files import check_set, quiet
from recollect.sources.address import Address, parse
from recollect.sources.base import SOURCES, Catalogue, Progress
from recollect.sources.cache import cache_folder
from recollect.sources.conversion import Conversion
from recollect.sources.selection import draw

if TYPE_CHECKING:
    from torch import Tensor

    from recollect.images import Images

IN_MEMORY_BYTES = Limit("IN_MEMORY_BYTES", 512 * MIB, "bytes of a set in memory; a larger one stays on disk")
FEWEST_ON_DISK = 64  # images


def load(text: str | Path, *, progress: Progress | None = None) -> Images:
    """Load the images of a source address, or of a path.

    Args:
        text: A source address such as `photos?count=40&size=32`, or the path of a folder or file.
        progress: Called with the number of images read and the number in all.

    Returns:
        The images, with ids and a name from the source.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> images.shape
        (3, 8, 8)
    """
    if isinstance(text, Path):
        text = str(text.expanduser().absolute())  # with a slash in it, it cannot be read as the name of a source
    address = parse(text, SOURCES)
    catalogue = open_catalogue(address)
    images = read(catalogue, draw(catalogue, address), address, progress)
    expected = catalogue.sha256.get(address.part)
    if expected and not address.drawn and images.hash != expected:
        raise InputError(
            f"{images.name} has other pixels than its record: sha256 {images.hash[:12]} instead of {expected[:12]}. "
            "The files have changed since, or are converted otherwise."
        )
    return images


def runs_code(text: str) -> bool:
    """Say whether to open this source address is to run code that it names; nothing is run here."""
    try:
        return SOURCES[parse(text, SOURCES).source].runs_code
    except InputError:  # it names no source
        return False


def control_of(train: str | Path) -> str | None:
    """Return the address of the control set that the address of a train set names too; None where it names none."""
    address = parse(str(train), SOURCES)
    if address.part != "train" or not SOURCES[address.source].holds_control:
        return None
    return str(replace(address, part="control"))


def open_catalogue(address: Address) -> Catalogue:
    """List the images of a source, without reading them."""
    source = SOURCES[address.source]
    try:
        return source.open(location_of(address), address)
    except InputError as error:
        if address.path or not source.archives:
            raise
        raise InputError(
            f"{error} To put it there run: recollect data fetch {source.name}. Or say where you have it: "
            f"{source.name}:PATH."
        ) from None


def location_of(address: Address) -> Path:
    """Return where the files of an address are; the cache folder if it has no path."""
    return Path(address.path).expanduser() if address.path else cache_folder()


def read(catalogue: Catalogue, positions: np.ndarray, address: Address, progress: Progress | None = None) -> Images:
    """Read the images at these positions, or leave them on disk where they are many; 8-bit ones stay 8-bit."""
    from recollect.images import Images  # imports torch, which listing the sources does not wait for

    name = printable(str(address))
    ids = [printable(catalogue.ids[position]) for position in positions]
    reader = SourceReader(str(address), catalogue)
    if _stays_on_disk(reader, positions, name):
        with _named(name):
            refuse_bits = partial(_check_bits, catalogue, name)
            return Images.on_disk(reader, positions, ids, name, catalogue.columns, refuse_bits)
    values = reader(positions, progress or quiet)
    with _named(name):
        if values.is_floating_point():
            return Images(values, ids, name, catalogue.columns)
        _check_bits(catalogue, name, int(values.max()))
        return Images.from_uint8(values, ids, name)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the source in an error, once."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(name) else f"{name}: {text}") from None


@dataclass
class SourceReader:
    """Read the images of an address by their positions. Another process opens the same address itself."""

    address: str
    catalogue: Catalogue | None = None

    def __call__(self, positions: np.ndarray, progress: Progress = quiet) -> Tensor:
        from recollect.images.image_forms import tensor_of

        address = parse(self.address, SOURCES)
        if self.catalogue is None:
            self.catalogue = open_again(self.address)
        values = self.catalogue.read(positions, progress)
        with _named(printable(self.address)):
            return tensor_of(Conversion.of(address).all(values))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the list of images here, and name the path in full: other processes have other working folders."""
        address = parse(self.address, SOURCES)
        if address.path:
            address = replace(address, path=str(location_of(address).absolute()))
        return {"address": str(address), "catalogue": None}


@lru_cache(maxsize=4)
def open_again(text: str) -> Catalogue:
    try:
        return open_catalogue(parse(text, SOURCES))
    except InputError as error:
        raise InputError(
            f"{error} A set that is too large for memory is read by every machine itself: put it where all find it."
        ) from None


def _stays_on_disk(reader: SourceReader, positions: np.ndarray, name: str) -> bool:
    """Say whether a set is left on disk: where it would take much memory, and parts can be read alone."""
    catalogue = reader.catalogue
    assert catalogue is not None
    if not catalogue.in_place or len(positions) < FEWEST_ON_DISK:
        return False
    try:
        first = reader(positions[:1])
    except InputError:
        return False  # a reading of all files says how many are bad
    size = first.numel() * first.element_size() * len(positions)
    if size <= IN_MEMORY_BYTES.value:
        return False
    if catalogue.may_grow:
        check_set((len(positions), *first.shape[1:]), name)
    return True


def _check_bits(catalogue: Catalogue, name: str, largest: int) -> None:
    if catalogue.refuses_bits:
        from recollect.images import check_8_bit

        check_8_bit(largest, name)
