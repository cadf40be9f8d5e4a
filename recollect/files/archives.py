"""Archives from strangers: opened and read within limits, never unpacked to disk."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from recollect.errors import InputError, first_line
from recollect.files.limits import LISTING, MODEL_GROWTH, MODEL_LISTING, Limit
from recollect.files.pickles import check_work

# What zipfile raises for a damaged archive; most of these are undocumented.
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError, ValueError, OSError)


# Entries that torch reads whole on opening, before any other; each holds a number or a word.
_LABELS = ("version", "byteorder", "serialization_id", "archive_format", "archive_version", ".format_version")
_LONGEST_LABEL = 4096  # bytes


class BrokenZip(Exception):
    """Why an archive cannot be read."""


class _Listed(io.FileIO):
    """A file whose list of entries must be short: zipfile reads the list at once and makes an object of each entry."""

    limit: Limit | None = None  # of one read, while the list is read

    def read(self, size: int | None = -1, /) -> bytes | None:  # type: ignore[override, unused-ignore]
        if self.limit and size:
            self.limit.check(size, f"The archive {self.name} has a list of entries of {size:,} bytes.")
        return super().read(-1 if size is None else size)


@contextmanager
def open_zip(path: Path, limit: Limit = LISTING) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose list of entries is within a limit, or raise BrokenZip."""
    with _Listed(path) as file, _list_entries(file, limit) as archive:
        yield archive


def _list_entries(file: _Listed, limit: Limit) -> zipfile.ZipFile:
    try:
        file.limit = limit
        archive = zipfile.ZipFile(file)  # type: ignore[call-overload, unused-ignore]
        file.limit = None
        return archive
    except InputError:
        raise
    except _BROKEN as error:
        raise BrokenZip(first_line(error)) from None


def read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Unpack an entry in memory, or raise BrokenZip; zipfile never yields more than the size that an entry claims."""
    try:
        return archive.read(entry)
    except _BROKEN as error:
        raise BrokenZip(first_line(error)) from None


def unpacked_size(entries: Iterable[zipfile.ZipInfo]) -> int:
    """Add up the sizes that entries claim to unpack to."""
    return sum(entry.file_size for entry in entries)


def check_growth(entries: Iterable[zipfile.ZipInfo], path: Path) -> None:
    """Refuse entries of a model that unpack to far more than its file; torch itself stores tensors unpacked."""
    packed, unpacked = path.stat().st_size, unpacked_size(entries)
    MODEL_GROWTH.check(unpacked - packed, f"Its {packed:,} bytes unpack to {unpacked:,}.")


def check_torch_archive(path: Path) -> None:
    """Refuse an archive of torch's that unpacks to far more than its file, or holds a pickle of too much work."""
    try:
        with open_zip(path, MODEL_LISTING) as archive:
            check_growth(archive.infolist(), path)
            for entry in archive.infolist():
                _check_label(entry, path)
                if entry.filename.endswith("data.pkl"):
                    check_work(read_entry(archive, entry), str(path))
    except BrokenZip as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


def _check_label(entry: zipfile.ZipInfo, path: Path) -> None:
    name = entry.filename.rsplit("/", 1)[-1]
    if name in _LABELS and entry.file_size > _LONGEST_LABEL:
        raise InputError(
            f"{path} has {entry.file_size:,} bytes under the name {entry.filename!r}, where torch writes a word."
        )


def check_safetensors(path: Path) -> None:
    """Refuse a safetensors file whose header, which lists its tensors, is beyond the limit."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    MODEL_LISTING.check(min(length, path.stat().st_size), f"{path} has a header of {length:,} bytes.")


class Metered(io.RawIOBase):
    """A stream that refuses to give more than a number of bytes."""

    def __init__(self, inner: IO[bytes], most: int) -> None:
        super().__init__()
        self.inner, self.left = inner, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes; raise OverflowError where the stream goes on beyond the limit."""
        wanted = self.left + 1 if size < 0 else min(size, self.left + 1)
        content = self.inner.read(wanted)
        self.left -= len(content)
        if self.left < 0:
            raise OverflowError
        return content
