"""From a source address to images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import InputError
from recollect.image_files import quiet
from recollect.names import printable
from recollect.sources.address import Address, parse
from recollect.sources.base import SOURCES, Catalogue, Progress
from recollect.sources.cache import cache_folder
from recollect.sources.conversion import Conversion
from recollect.sources.selection import draw

if TYPE_CHECKING:
    from recollect.images import Images


def load(text: str | Path, *, progress: Progress | None = None) -> Images:
    """Load the images of a source address such as `photos?count=40&size=32`, or of a path.

    `progress(done, total)` is called while images are read.
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
    """Read the images at these positions; 8-bit ones stay 8-bit."""
    from recollect.image_forms import tensor_of
    from recollect.images import Images  # imports torch, which listing the sources does not wait for

    values = catalogue.read(positions, progress or quiet)
    name = printable(str(address))
    ids = [printable(catalogue.ids[position]) for position in positions]
    try:
        values = Conversion.of(address).all(values)
        pixels = tensor_of(values)
        if values.dtype == np.uint8:
            return Images.from_uint8(pixels, ids, name)
        return Images(pixels, ids, name, catalogue.columns)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
