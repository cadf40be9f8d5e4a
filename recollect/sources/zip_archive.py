"""Image files in a .zip, read in place: nothing is unpacked to disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from recollect.errors import InputError
from recollect.files.archives import BrokenZip, open_zip, read_entry, unpacked_size
from recollect.files.limits import IMAGES
from recollect.images.decoding import suffixes
from recollect.images.image_files import read_files
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source
from recollect.sources.conversion import Conversion
from recollect.sources.unpacking import check_unpacked

_ADVICE = "Repair them, or make the archive without them."
_SIZE_ADVICE = "Add size={smallest} to cut each to its centred square and shrink it, or resize={smallest}."


def list_images(path: Path, address: Address) -> Catalogue:
    """List the image files in an archive; ids are their names in it, the class is the folder a file lies in."""
    with _opened(path) as archive:
        entries = [entry for entry in archive.infolist() if _is_image(entry.filename)]
    if not entries:
        raise InputError(f"{path} holds nothing that ends like an image file (.png, .jpg and so on).")
    IMAGES.check(len(entries), f"{path} holds {len(entries):,} images.")
    check_unpacked(unpacked_size(entries), path)
    names = sorted(entry.filename for entry in entries)
    return Catalogue(
        ids=names,
        read=partial(_read, path, names, Conversion.of(address)),
        labels=[PurePosixPath(name).parent.as_posix() for name in names],
        in_place=True,
    )


def _is_image(name: str) -> bool:
    """Say whether an entry is an image file, and none that a system hides."""
    path = PurePosixPath(name)
    return path.suffix.lower() in suffixes() and not any(part.startswith((".", "__MACOSX")) for part in path.parts)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        with open_zip(path) as archive:
            yield archive
    except BrokenZip as error:
        raise InputError(f"{path} is not a readable zip file ({error}).") from None


def _read(path: Path, names: list[str], convert: Conversion, positions: np.ndarray, progress: Progress) -> np.ndarray:
    chosen = [names[position] for position in positions]
    with _opened(path) as archive:
        contents = [partial(_content, archive, name) for name in chosen]
        return read_files(
            contents, chosen, convert=convert, progress=progress, advice=_ADVICE, size_advice=_SIZE_ADVICE
        )


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return read_entry(archive, archive.getinfo(name))
    except BrokenZip as error:
        raise InputError(f"It cannot be read from the archive: {error}.") from None


SOURCE = Source(
    name="zip",
    summary="a .zip of your own images, with or without folders, read in place",
    example="zip:my/pictures.zip?count=100&size=64",
    open=list_images,
    path="a .zip file of image files",
    suffixes=(".zip",),
    order=66,
)
