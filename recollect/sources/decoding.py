"""Image files to 8-bit values: read right, or refused with the file's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import InputError
from recollect.images import pil_values
from recollect.sources.base import Progress

if TYPE_CHECKING:
    from PIL import Image as PillowImage

MOST_PIXELS = 50_000_000  # a small file can claim any size; this is 7,000 x 7,000
_AT_ONCE = 64
_ORIENTATION = 274  # the EXIF tag
# EPS runs another program; the others are names of formats that Pillow knows of but cannot decode.
_LEFT_OUT = {"EPS", "BUFR", "GRIB", "HDF5", "MPEG", "WMF"}


@lru_cache
def formats() -> tuple[str, ...]:
    """Return the formats that Pillow can read here, less those not to be opened."""
    from PIL import Image

    Image.init()
    return tuple(sorted(set(Image.OPEN) - _LEFT_OUT))


@lru_cache
def suffixes() -> frozenset[str]:
    """Return the suffixes of image files, in lower case."""
    from PIL import Image

    allowed = set(formats())
    return frozenset(ending for ending, kind in Image.registered_extensions().items() if kind in allowed)


def decode(data: bytes | Path, name: str, kinds: tuple[str, ...] | None = None) -> np.ndarray:
    """Decode an image file to upright 8-bit values, C x H x W with 1 or 3 channels; `name` is for the error."""
    from PIL import Image, ImageOps

    if isinstance(data, Path) and not data.is_file():  # opening a pipe would wait for ever
        raise InputError(f"{name} cannot be read as an image: it is no file, or a link to none.")
    try:
        with Image.open(BytesIO(data) if isinstance(data, bytes) else data, formats=kinds or formats()) as image:
            _check(image)
            turned = image.getexif().get(_ORIENTATION, 1) != 1
            upright = ImageOps.exif_transpose(image) if turned else image
            if "transparency" in image.info:  # one colour, or some of a palette, stand for transparent
                upright = upright.convert("LA" if image.mode in ("1", "L") else "RGBA")
            values = pil_values(upright)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except Exception as error:  # Pillow's decoders raise a dozen kinds, and a bad file must never be a traceback
        raise InputError(f"{name} cannot be read as an image: {_reason(error)}.") from None
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def _reason(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "its content is of no image format that is read here"
    return str(error).rstrip(".") or type(error).__name__


def _check(image: PillowImage.Image) -> None:
    """Refuse, from the header alone, what would not be read right."""
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise InputError(f"It claims {width}x{height} pixels; more than {MOST_PIXELS:,} are not opened.")
    if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:  # an MPO is a camera's JPEG with a preview
        raise InputError(f"It holds {getattr(image, 'n_frames', 0)} pictures; save the one that is meant on its own.")
    if _deep(image):
        raise InputError("It has 16 bits a value, which would be cut to 8; convert it to 8 bits first.")


def _deep(image: PillowImage.Image) -> bool:
    """Return whether Pillow would silently drop bits: its mode is RGB also for colour files of 16 bits."""
    for codec, _, _, args in getattr(image, "tile", ()):
        if ";16" in str(args) or codec == "SGI16" or (codec.startswith("ppm") and args[-1] > 255):
            return True
    return image.format == "JPEG2000" and _jpeg2000_bits(image) > 8


def _jpeg2000_bits(image: PillowImage.Image) -> int:
    """Return the bits of the first channel, from the SIZ segment at the start of every JPEG 2000 stream."""
    file = getattr(image, "fp", None)
    if file is None:
        return 0
    file.seek(0)
    header = file.read(65536)
    file.seek(0)
    start = header.find(b"\xff\x4f\xff\x51")
    return (header[start + 42] & 0x7F) + 1 if 0 <= start < len(header) - 42 else 0


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
    raise InputError(f"{len(failures)} of {count} files cannot be used. {reasons}{more} {advice}")
