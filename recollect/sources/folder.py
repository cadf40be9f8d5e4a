"""A folder of the user's own images, nested or not, in any format that Pillow reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.counting import counted
from recollect.errors import InputError
from recollect.files.limits import IMAGES
from recollect.images.decoding import Meter, decode, suffixes
from recollect.images.image_files import in_parallel, quiet, read_files
from recollect.sources.address import Address
from recollect.sources.base import SOURCES, Catalogue, Progress, Source
from recollect.sources.conversion import Conversion
from recollect.user_code import advice_for_script

_ADVICE = "Repair or remove them, or add bad=skip to leave such files out."
_SIZE_ADVICE = "Add size={smallest} to cut each to its centred square and shrink it, or resize={smallest}."


class SkippedFiles(UserWarning):
    """Files that were left out because the caller chose bad=skip."""


def list_images(path: Path, address: Address) -> Catalogue:
    """List the image files under path; ids are paths inside the folder, the class is the folder a file lies in."""
    bad = address.parameters["bad"]
    if bad not in ("refuse", "skip"):
        raise InputError(f"bad={bad} is unknown; it is refuse (the default) or skip.")
    names, convert = _list(path), Conversion.of(address)
    if bad == "skip":
        names = _readable(path, names, convert)
    return Catalogue(
        ids=names,
        read=lambda positions, progress: _read(path, [names[p] for p in positions], convert, progress),
        labels=[Path(name).parent.as_posix() for name in names],
        in_place=True,
    )


def _list(path: Path) -> list[str]:
    if not path.is_dir():
        if advice := advice_for_script(str(path)):
            raise InputError(advice)
        if not path.is_file():
            raise InputError(f"There is no folder {path}.")
        kinds = ", ".join(suffix for source in SOURCES.values() for suffix in source.suffixes)
        raise InputError(f"{path} is a file, not a folder; files that hold sets end in {kinds}.")
    files = list(_visible_files(path))
    names = [file for file in files if Path(file).suffix.lower() in suffixes()]
    if not names:
        seen = f"{counted(len(files), 'file')}, but none" if files else "nothing"
        raise InputError(f"The folder {path} holds {seen} that ends like an image file (.png, .jpg and so on).")
    return sorted(names)


def _visible_files(path: Path) -> Iterator[str]:
    """Yield the files under a folder, as paths inside it, up to the limit."""
    count = 0
    for at, folders, files in os.walk(path, onerror=_unreadable):
        folders[:] = [folder for folder in folders if not folder.startswith((".", "__MACOSX"))]
        count += len(files)
        IMAGES.check(count, f"The folder {path} holds more than {count - len(files):,} files.")
        inside = Path(at).relative_to(path)
        yield from ((inside / file).as_posix() for file in files if not file.startswith("."))


def _unreadable(error: OSError) -> None:
    raise InputError(f"The folder {error.filename} cannot be listed: {error.strerror}.")


def _readable(path: Path, names: list[str], convert: Conversion) -> list[str]:
    """Return the files that can be read; each is decoded, so that a draw never meets a bad one."""

    meter = Meter()

    def check(number: int) -> None:
        decode(path / names[number], names[number], meter=meter, convert=convert)

    failures = dict(in_parallel(check, len(names), quiet))
    if failures:
        reasons = "; ".join(str(error).rstrip(".") for error in list(failures.values())[:10])
        more = f"; and {len(failures) - 10} more" if len(failures) > 10 else ""
        text = f"Left out {len(failures)} of {len(names)} files in {path}: {reasons}{more}."
        warnings.warn(text, SkippedFiles, stacklevel=2)
    if len(failures) == len(names):
        raise InputError(f"None of the {len(names)} image files in {path} can be read.")
    return [name for number, name in enumerate(names) if number not in failures]


def _read(path: Path, names: list[str], convert: Conversion, progress: Progress) -> np.ndarray:
    paths = [path / name for name in names]
    return read_files(paths, names, convert=convert, progress=progress, advice=_ADVICE, size_advice=_SIZE_ADVICE)


SOURCE = Source(
    name="folder",
    summary="a folder of your own images, with or without sub-folders; size=N cuts squares and shrinks them",
    example="folder:my/pictures?count=100&size=64&bad=skip",
    open=list_images,
    path="a folder of image files",
    parameters=("bad",),
    defaults={"bad": "refuse"},
    order=50,
)
