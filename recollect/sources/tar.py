"""Tar archives from strangers: read once, in memory, never unpacked to disk, and never far beyond a size."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from recollect.errors import InputError
from recollect.files.archives import Metered
from recollect.files.limits import SET_GROWTH

_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_MOST_MEMBERS = 1000
_BROKEN = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)


def read_tar(path: Path, wanted: Callable[[str], bool], most_bytes: int) -> dict[str, bytes]:
    """Read the files whose names are wanted; each has at most `most_bytes`, and the whole what SET_GROWTH allows."""
    contents: dict[str, bytes] = {}
    limit = SET_GROWTH.value
    try:
        with _unpacked(path) as stream, tarfile.open(fileobj=Metered(stream, limit), mode="r|") as archive:
            for number, member in enumerate(archive):
                _check_member(path, member, number)
                name = PurePosixPath(member.name).name
                file = archive.extractfile(member) if member.isfile() and wanted(name) else None
                if file is not None:
                    _check_size(path, member, most_bytes)
                    contents[name] = file.read()
    except OverflowError:
        SET_GROWTH.check(limit + 1, f"{path} unpacks to more than {limit:,} bytes.")
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{path} is not a readable tar archive ({error}); fetch it again.") from None
    return contents


def _unpacked(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        opener = _OPENERS.get(file.read(2))
    return opener(path, "rb") if opener else path.open("rb")


def _check_member(path: Path, member: tarfile.TarInfo, number: int) -> None:
    if number >= _MOST_MEMBERS:
        raise InputError(f"{path} holds more than {_MOST_MEMBERS:,} entries, such as {member.name[:60]!r}.")


def _check_size(path: Path, member: tarfile.TarInfo, most: int) -> None:
    if member.size > most:
        raise InputError(f"{path}/{member.name} is {member.size:,} bytes long, more than {most:,}; it is not opened.")
