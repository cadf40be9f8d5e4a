"""MATLAB files from strangers, checked before scipy reads them: how many variables, and what each unpacks to.

The format is that of MATLAB 5: a header of 128 bytes, then one element for each variable. An element starts with its
kind and its length, four bytes each, and may be packed with zlib. A packed variable can claim any size, and scipy makes
room for what is claimed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

from recollect.errors import InputError
from recollect.sources.unpacking import check_unpacked

HEADER = 128
MATRIX, PACKED_ELEMENT = 14, 15
NUMBERS, COMPLEX = range(6, 16), 0x0800  # kinds of arrays: double to uint64; and whether an array is complex
FLAGS = 16  # bytes of the flags of a variable, with their own start
MOST_VARIABLES, MOST_DIMENSIONS, LONGEST_NAME = 16, 8, 63
SEEN = 8 + FLAGS + (8 + 4 * MOST_DIMENSIONS) + (8 + LONGEST_NAME + 8) + 8  # bytes in which a variable has said its name

Order = Literal["<", ">"]


def check_mat(path: Path) -> None:
    """Refuse a MATLAB file that has many variables, one of them twice, or a variable far larger than the file."""
    with path.open("rb") as file:
        order = _byte_order(path, file.read(HEADER))
        names: set[str] = set()
        for start in _variables(path, file, order):
            name, size = _describe(path, start, order)
            check_unpacked(size, path)
            if name in names:
                raise InputError(f"{path} is no SVHN file: it holds two variables {name!r}.")
            names.add(name)


def _byte_order(path: Path, header: bytes) -> Order:
    if header[126:128] == b"IM":
        return "<"
    if header[126:128] == b"MI":
        return ">"
    raise InputError(f"{path} is not a readable MATLAB file: expected the format of MATLAB 5.")


def _variables(path: Path, file: IO[bytes], order: Order) -> Iterator[bytes]:
    """Yield the start of each variable, unpacked."""
    for number in range(MOST_VARIABLES + 1):
        tag = file.read(8)
        if len(tag) < 8:
            return
        if number == MOST_VARIABLES:
            raise InputError(f"{path} is no SVHN file: it holds more than {MOST_VARIABLES} variables.")
        kind, length = struct.unpack(f"{order}II", tag)
        following = file.tell() + length
        if kind == PACKED_ELEMENT:
            yield _unpacked_start(path, file.read(min(length, 4096)))
        else:
            yield tag + file.read(min(length, SEEN))
        file.seek(following)


def _unpacked_start(path: Path, packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, SEEN)
    except zlib.error as error:
        raise InputError(f"{path} is not a readable MATLAB file ({error}).") from None


def _describe(path: Path, start: bytes, order: Order) -> tuple[str, int]:
    """Return the name of a variable and the bytes that it unpacks to."""
    try:
        kind, size, _, _, flags, _, _, dimensions = struct.unpack_from(f"{order}8I", start)
        is_plain = flags & 0xFF in NUMBERS and not flags & COMPLEX
        if kind != MATRIX or not is_plain or dimensions > 4 * MOST_DIMENSIONS:
            raise InputError(f"{path} is no SVHN file: it holds something other than plain arrays.")
        rest = start[8 + FLAGS + 8 + _padded(dimensions) :]
        name, rest = _name(path, rest, order)
        return name, max(size, _length(rest, order)[0])
    except struct.error:
        raise InputError(f"{path} is not a readable MATLAB file: it ends in the middle of a variable.") from None


def _name(path: Path, element: bytes, order: Order) -> tuple[str, bytes]:
    """Read a name, and return what follows it."""
    length, start = _length(element, order)
    if length > LONGEST_NAME:
        raise InputError(f"{path} is no SVHN file: the name of a variable has {length:,} letters.")
    return element[start : start + length].decode("latin-1"), element[_padded(start + length) :]


def _length(element: bytes, order: Order) -> tuple[int, int]:
    """Return the length of an element and where its content starts; up to four bytes stand inside its own start."""
    kind, length = struct.unpack_from(f"{order}II", element)
    return (kind >> 16, 4) if kind >> 16 else (length, 8)


def _padded(length: int) -> int:
    return length + (-length) % 8
