"""Tiny ImageNet: the official zip, read in place, or the folder it unpacks to."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import numpy as np

from recollect.errors import InputError
from recollect.files.archives import BrokenZip, open_zip
from recollect.images.decoding import decode
from recollect.images.image_files import in_parallel, refuse
from recollect.sources.address import Address
from recollect.sources.base import Archive, Catalogue, Progress, Source

FOLDER, ARCHIVE = "tiny-imagenet-200", "tiny-imagenet-200.zip"
SIDE = 64
_ENTRY = re.compile(r"(?:.*/)?train/(n[0-9]{8})/images/(n[0-9]{8}_[0-9]+)\.JPEG")
_MOST_BYTES = 1_000_000  # a file of the set has about 2,000; this bounds what a hostile zip can unfold to


def list_images(path: Path, _address: Address) -> Catalogue:
    """List the training images under path; ids are the official file names, such as n01443537_10."""
    path = _find(path)
    names = _zip_names(path) if path.is_file() else _folder_names(path)
    images = [(match[2], match[1], name) for name in names if (match := _ENTRY.fullmatch(name))]
    if not images:
        raise InputError(f"{path} holds no Tiny ImageNet images; expected train/WNID/images/WNID_K.JPEG inside.")
    images.sort()
    ids, labels, names = map(list, zip(*images, strict=True))
    return Catalogue(ids, lambda positions, progress: _read(path, names, positions, progress), labels, in_place=True)


def _find(path: Path) -> Path:
    """Find the zip or the folder with train/ in it: path itself, or its official name inside path."""
    if path.is_file() or (path / "train").is_dir():
        return path
    for candidate in (path / FOLDER, path / ARCHIVE):
        if candidate.exists():
            return candidate
    raise InputError(f"There is no Tiny ImageNet at {path}; expected {ARCHIVE}, or the folder {FOLDER}.")


def _zip_names(path: Path) -> list[str]:
    with _zip(path) as archive:
        names = archive.namelist()
    for name in names:  # nothing is unpacked, so these could do no harm; but the official zip has none
        if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts:
            raise InputError(f"{path} is refused: its entry {name!r} points outside the archive.")
    return names


def _folder_names(path: Path) -> list[str]:
    return [file.relative_to(path).as_posix() for file in path.glob("train/*/images/*.JPEG")]


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with open_zip(path) as archive:
            yield archive
    except BrokenZip as error:
        raise InputError(f"{path} is not a readable zip file ({error}); fetch it again.") from None


def _read(path: Path, names: list[str], positions: np.ndarray, progress: Progress) -> np.ndarray:
    if path.is_dir():
        return _decode(lambda name: path / name, path, names, positions, progress)
    with _zip(path) as archive:
        return _decode(lambda name: _entry(archive, name), path, names, positions, progress)


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the content of one entry; zipfile never unfolds more than the size that was checked."""
    size = archive.getinfo(name).file_size
    if size > _MOST_BYTES:
        raise InputError(f"{name} claims {size:,} bytes; a file of Tiny ImageNet has about 2,000.")
    try:
        return archive.read(name)
    except Exception as error:  # a damaged zip can fail in its header, its checksum or its decompressor
        raise InputError(f"{name} cannot be read from the zip: {error}.") from None


def _decode(
    content: Callable[[str], bytes | Path], path: Path, names: list[str], positions: np.ndarray, progress: Progress
) -> np.ndarray:
    """Decode on threads straight into the result, in file order, so that memory holds little but the result."""
    result = np.empty((len(positions), 3, SIDE, SIDE), np.uint8)
    order = np.argsort(positions)

    def one(number: int) -> None:
        row = order[number]
        name = names[positions[row]]
        values = decode(content(name), name, ("JPEG",))
        if values.shape[1:] != (SIDE, SIDE):
            raise InputError(f"{name} is {values.shape[2]}x{values.shape[1]}; Tiny ImageNet has {SIDE}x{SIDE}.")
        result[row] = values  # a grey image fills all three channels

    refuse(in_parallel(one, len(positions), progress), len(positions), f"{path} is damaged: fetch it again.")
    return result


SOURCE = Source(
    name="tiny-imagenet",
    summary="Tiny ImageNet, training images of 64x64 in 200 classes",
    example="tiny-imagenet?per-class=3&seed=42",
    open=list_images,
    path=f"the file {ARCHIVE} or the folder {FOLDER}",
    archives=(
        Archive("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", ARCHIVE, 248),
    ),
    order=40,
)
