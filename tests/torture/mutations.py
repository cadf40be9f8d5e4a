"""Change valid files at random: bits, lengths, numbers in text, and the entries of archives."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable

NUMBERS = (b"0", b"1", b"7", b"255", b"65536", b"2147483648", b"99999999999", b"1" * 25, b"1e400", b"NaN")
NAMES = ("../../escaped", "/escaped", "a\\..\\escaped", "x" * 300, "\x1b[31mred", "con", ".", "\u202egnp")
BOMB_BYTES = 300 * 1024**2
_PIECE = bytes(1024**2)

Mutation = Callable[[bytes, bytes, random.Random], bytes]


def mutate(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Apply one to three mutations; `other` is a valid file to take pieces from."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = rng.choice(MUTATIONS)(content, other, rng)
    return content


def flip_bits(content: bytes, other: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if content else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_header(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Set bytes near the start, where lengths and types are."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4) if content else 0):
        changed[rng.randrange(min(64, len(changed)))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def truncate(content: bytes, other: bytes, rng: random.Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def splice(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Overwrite or insert a piece of another file."""
    start = rng.randrange(len(other) + 1)
    piece = other[start : start + rng.choice((4, 64, 1024, len(other)))]
    at = rng.randint(0, len(content))
    return content[:at] + piece + content[at + rng.choice((0, len(piece))) :]


def repeat(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Repeat a piece many times."""
    start = rng.randrange(len(content) + 1)
    end = start + rng.choice((1, 16, 256))
    return content[:end] + content[start:end] * rng.choice((1, 10, 1000)) + content[end:]


def change_numbers(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Replace numbers that are written as text, as in JSON headers and shapes."""
    found = list(re.finditer(rb"\d+", content[:200_000]))
    for match in sorted(rng.sample(found, min(len(found), rng.randint(1, 3))), key=lambda m: -m.start()):
        content = content[: match.start()] + rng.choice(NUMBERS) + content[match.end() :]
    return content


def change_inside(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Mutate what is compressed, or an entry of a zip archive; other files as they are."""
    if content[:2] == b"PK":
        return change_zip(content, other, rng)
    if content[:2] == b"\x1f\x8b":
        return _repacked(gzip.decompress, rng.choice((gzip.compress, bz2.compress)), content, other, rng)
    return change_numbers(content, other, rng)


def _repacked(
    unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], content: bytes, other: bytes, rng: random.Random
) -> bytes:
    try:
        return pack(rng.choice(PLAIN)(unpack(content), other, rng))
    except (OSError, EOFError, ValueError, zlib.error):  # it was damaged by a mutation before
        return content


def change_zip(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Write an archive anew with one entry changed, renamed, doubled, dropped or grown."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:  # it was damaged by a mutation before
        return flip_bits(content, other, rng)
    if not entries:
        return content
    chosen, change = (
        rng.randrange(len(entries)),
        rng.choice(("content", "content", "name", "double", "drop")),
    )
    name, inside = entries[chosen]
    if change == "content":
        entries[chosen] = name, rng.choice(PLAIN)(inside, other, rng)
    elif change == "name":
        entries[chosen] = rng.choice((*NAMES, entries[0][0])), inside
    elif change == "double":
        entries.append((name, rng.choice(PLAIN)(inside, other, rng)))
    else:
        del entries[chosen]
    bomb = name if rng.random() < 0.02 else None
    return _zip(entries, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)), bomb)


def _zip(entries: list[tuple[str, bytes]], compression: int, bomb: str | None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as archive:
        for name, inside in entries:
            if name == bomb:
                _write_zeros(archive, name)
            else:
                info = zipfile.ZipInfo(name)
                info.compress_type = compression
                _write_entry(archive, info, inside)
    return buffer.getvalue()


def _write_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, inside: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two entries of one name are meant
        archive.writestr(info, inside)


def _write_zeros(archive: zipfile.ZipFile, name: str) -> None:
    """Write an entry that unfolds to a thousand times its size."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w") as file:
        for _ in range(BOMB_BYTES // len(_PIECE)):
            file.write(_PIECE)


PLAIN: tuple[Mutation, ...] = (flip_bits, flip_header, truncate, splice, repeat, change_numbers)
MUTATIONS: tuple[Mutation, ...] = (*PLAIN, change_inside, change_inside, change_inside)
