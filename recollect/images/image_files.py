"""Many image files to one array of 8-bit values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from recollect.counting import counted
from recollect.errors import InputError
from recollect.files.limits import SET_BYTES
from recollect.images.decoding import Content, Meter, decode

Progress = Callable[[int, int], None]  # how many are done, of how many
Convert = Callable[[np.ndarray], np.ndarray]  # of one image, C x H x W

_AT_ONCE = 64


def quiet(_done: int, _total: int) -> None:
    """Report no progress."""


def read_files(
    files: Sequence[Content], names: Sequence[str], *, convert: Convert | None = None, progress: Progress = quiet,
    advice: str = "", size_advice: str = "",
) -> np.ndarray:  # fmt: skip
    """Decode on threads into one array, N x C x H x W, whose size comes from the first file that can be read.

    `names` are for errors, and so is the advice on bad files and on files of different sizes.
    """
    first, meter = _first_shape(files, names, convert), Meter()
    check_set((len(names), 3, *first), f"The set of {names[0]} and others")
    result = np.empty((len(names), 3, *first), np.uint8)
    shapes: list[tuple[int, ...]] = [()] * len(names)

    def one(number: int) -> None:
        values = decode(files[number], names[number], meter=meter, convert=convert)
        shapes[number] = values.shape
        if values.shape[1:] == first:
            result[number] = values  # a grey image fills all three channels

    refuse(in_parallel(one, len(names), progress), len(names), advice)
    _check_sizes(names, shapes, size_advice)
    grey = all(shape[0] == 1 for shape in shapes)
    return result[:, :1].copy() if grey else result


def check_set(shape: tuple[int, ...], name: str) -> None:
    """Refuse a set of 8-bit images that is larger than the limit, before memory is taken for it."""
    size = 1
    for length in shape:
        size *= length
    SET_BYTES.check(size, f"{name} holds {'x'.join(map(str, shape))} values, {size:,} bytes.")


def _first_shape(files: Sequence[Content], names: Sequence[str], convert: Convert | None) -> tuple[int, int]:
    """Return height and width of the first file that can be read; the others are compared later."""
    for file, name in zip(files, names, strict=True):
        try:
            height, width = decode(file, name, convert=convert).shape[1:]
            return height, width
        except InputError:
            continue
    return 1, 1  # none can be read: the reading itself will name them


def _check_sizes(names: Sequence[str], shapes: list[tuple[int, ...]], advice: str) -> None:
    """Refuse images of different sizes."""
    sizes = Counter((shape[2], shape[1]) for shape in shapes)
    if len(sizes) == 1:
        return
    examples = {(shape[2], shape[1]): name for name, shape in zip(names, shapes, strict=True)}
    named = {size: f"{counted(number, 'file')}, such as {examples[size]}" for size, number in sizes.most_common(3)}
    listed = ", ".join(f"{width}x{height} ({files})" for (width, height), files in named.items())
    smallest = min(min(one) for one in sizes)
    raise InputError(
        f"The images differ in size: {listed}{' and others' if len(sizes) > 3 else ''}. "
        + advice.format(smallest=min(64, smallest))
    )


def in_parallel(task: Callable[[int], None], count: int, progress: Progress) -> list[tuple[int, InputError]]:
    """Run task(0) ... task(count - 1) on threads; return those that refused their file, with their errors."""

    def several(start: int) -> list[tuple[int, InputError]]:
        failed = []
        for number in range(start, min(start + _AT_ONCE, count)):
            try:
                task(number)
            except InputError as error:
                failed.append((number, error))
        return failed

    failures: list[tuple[int, InputError]] = []
    starts = range(0, count, _AT_ONCE)
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:  # Pillow decodes outside Python's lock
        for start, failed in zip(starts, pool.map(several, starts), strict=True):
            failures += failed
            progress(min(start + _AT_ONCE, count), count)
    return failures


def refuse(failures: Sequence[tuple[int, InputError]], count: int, advice: str) -> None:
    """Raise one error that names what could not be read, if there is anything."""
    if not failures:
        return
    reasons = " ".join(str(error) for _, error in failures[:3])
    more = f" (and {len(failures) - 3} more)" if len(failures) > 3 else ""
    if len(failures) == count:  # to leave them out would leave nothing
        advice = ""
    raise InputError(f"{len(failures)} of {count} files cannot be used. {reasons}{more} {advice}".rstrip())
