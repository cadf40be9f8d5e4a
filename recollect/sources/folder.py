"""A folder of the user's own images, nested or not, in any format that Pillow reads."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.limits import IMAGES
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source, quiet
from recollect.sources.decoding import Meter, decode, in_parallel, refuse, suffixes
from recollect.sources.resize import to_square
from recollect.sources.unpacking import check_set

_ADVICE = "Repair or remove them, or add bad=skip to leave such files out."


class SkippedFiles(UserWarning):
    """Files that were left out because the caller chose bad=skip."""


def list_images(path: Path, address: Address) -> Catalogue:
    """List the image files under path; ids are paths inside the folder, the class is the folder a file lies in."""
    bad = address.parameters["bad"]
    if bad not in ("refuse", "skip"):
        raise InputError(f"bad={bad} is unknown; it is refuse (the default) or skip.")
    names = _list(path)
    if bad == "skip":
        names = _readable(path, names, address.size)
    return Catalogue(
        ids=names,
        read=lambda positions, progress: _read(path, [names[p] for p in positions], address.size, progress),
        labels=[Path(name).parent.as_posix() for name in names],
    )


def _list(path: Path) -> list[str]:
    if not path.is_dir():
        raise InputError(f"{path} is a file, not a folder." if path.is_file() else f"There is no folder {path}.")
    files = list(_visible_files(path))
    names = [file for file in files if Path(file).suffix.lower() in suffixes()]
    if not names:
        seen = f"{len(files)} files, but none of them" if files else "nothing that"
        raise InputError(f"The folder {path} holds {seen} ends like an image file (.png, .jpg and so on).")
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


def _pixels(path: Path, name: str, size: int | None, meter: Meter | None = None) -> np.ndarray:
    if size is None:
        return decode(path / name, name, meter=meter)
    return decode(path / name, name, meter=meter, shrink=lambda values: to_square(values, size))


def _readable(path: Path, names: list[str], size: int | None) -> list[str]:
    """Return the files that can be read; each is decoded, so that a draw never meets a bad one."""

    meter = Meter()

    def check(number: int) -> None:
        _pixels(path, names[number], size, meter)

    failures = dict(in_parallel(check, len(names), quiet))
    if failures:
        reasons = "; ".join(str(error).rstrip(".") for error in list(failures.values())[:10])
        more = f"; and {len(failures) - 10} more" if len(failures) > 10 else ""
        text = f"Left out {len(failures)} of {len(names)} files in {path}: {reasons}{more}."
        warnings.warn(text, SkippedFiles, stacklevel=2)
    if len(failures) == len(names):
        raise InputError(f"None of the {len(names)} image files in {path} can be read.")
    return [name for number, name in enumerate(names) if number not in failures]


def _read(path: Path, names: list[str], size: int | None, progress: Progress) -> np.ndarray:
    """Decode on threads into one array, whose size comes from the first file."""
    first, meter = _first_shape(path, names, size), Meter()
    check_set((len(names), 3, *first), str(path))
    result = np.empty((len(names), 3, *first), np.uint8)
    shapes: list[tuple[int, ...]] = [()] * len(names)

    def one(number: int) -> None:
        values = _pixels(path, names[number], size, meter)
        shapes[number] = values.shape
        if values.shape[1:] == first:
            result[number] = values  # a grey image fills all three channels

    refuse(in_parallel(one, len(names), progress), len(names), _ADVICE)
    _check_sizes(names, shapes)
    grey = all(shape[0] == 1 for shape in shapes)
    return result[:, :1].copy() if grey else result


def _first_shape(path: Path, names: list[str], size: int | None) -> tuple[int, int]:
    """Return height and width of the first file that can be read; the others are compared later."""
    if size is not None:
        return size, size
    for name in names:
        try:
            height, width = _pixels(path, name, None).shape[1:]
            return height, width
        except InputError:
            continue
    return 1, 1  # none can be read: the reading itself will name them


def _check_sizes(names: list[str], shapes: list[tuple[int, ...]]) -> None:
    """Refuse images of different sizes."""
    sizes = Counter((shape[2], shape[1]) for shape in shapes)
    if len(sizes) == 1:
        return
    examples = {(shape[2], shape[1]): name for name, shape in zip(names, shapes, strict=True)}
    listed = ", ".join(f"{w}x{h} ({n} files, such as {examples[w, h]})" for (w, h), n in sizes.most_common(3))
    smallest = min(min(one) for one in sizes)
    raise InputError(
        f"The images differ in size: {listed}{' and others' if len(sizes) > 3 else ''}. "
        f"Add size={min(64, smallest)} to cut each to its centred square and shrink it."
    )


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
