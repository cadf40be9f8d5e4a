"""SHA256SUMS: the hash of every file of an audit, in the format of sha256sum, so that a changed byte is found."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from recollect.errors import InputError
from recollect.records import atomically

MANIFEST = "SHA256SUMS"
FILES = ("audit.json", "images.csv", "samples.npz", "traces.npz", "report.html")

_NAME = re.compile(r"(?:cells/)?[\w.,+=-]{1,200}")


def write_manifest(folder: Path, keys: Iterable[str]) -> None:
    """List the files of an audit and of its cells; `keys` are those of the cells."""
    cells = [f"cells/{key}.{kind}" for key in keys for kind in ("json", "npz")]
    present = [name for name in (*FILES, *cells) if (folder / name).exists()]
    _write(folder, {name: _hash(folder / name) for name in present})


def renew_hash(folder: Path, name: str) -> None:
    """List a file that was written again; the others keep the hash that they were listed with."""
    if (folder / MANIFEST).exists():
        _write(folder, read_manifest(folder) | {name: _hash(folder / name)})


def read_manifest(folder: Path) -> dict[str, str]:
    """Read the hash of each file."""
    try:
        lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
        hashes = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except FileNotFoundError:
        raise InputError(f"There is no file {folder / MANIFEST}; run the audit again, which writes it.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / MANIFEST} cannot be read as a list of hashes: {error}.") from None
    if strange := [name for name in hashes if not _NAME.fullmatch(name)]:
        raise InputError(f"{folder / MANIFEST} lists {strange[0][:80]!r}, which no audit writes.")
    return hashes


def changed_files(folder: Path) -> Iterator[str]:
    """Say which files are not as they were listed."""
    for name, digest in read_manifest(folder).items():
        path = folder / name
        if not path.is_file():
            yield f"{name} is listed in {MANIFEST} and is not there."
        elif _hash(path) != digest:
            yield f"{name} was changed after it was written: its hash is not the one in {MANIFEST}."


def _write(folder: Path, hashes: dict[str, str]) -> None:
    with atomically(folder / MANIFEST) as file:
        file.write_text("".join(f"{digest}  {name}\n" for name, digest in hashes.items()), encoding="utf-8")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
