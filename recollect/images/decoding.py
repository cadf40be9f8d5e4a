"""Image files to 8-bit values: read right, or refused with the file's name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import InputError
from recollect.files.limits import DECODED, DECODED_GROWTH, IMAGE_PIXELS
from recollect.images.pil_images import pil_values

if TYPE_CHECKING:
    from PIL import Image as PillowImage

_LARGE = 4_000_000  # pixels; larger images are decoded one at a time, so that threads do not add up
_one_large = Lock()
_MOST_SCANS = 200  # of a JPEG; each goes over the whole image, and cameras write about ten
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


Content = bytes | Path | Callable[[], bytes]  # of an image file


class Meter:
    """Adds up what the files of a set decode to, and refuses the one that goes too far beyond their own sizes."""

    def __init__(self) -> None:
        self.excess, self.lock = 0, Lock()

    def add(self, pixels: int, size: int) -> None:
        """Count a file of this many pixels and bytes."""
        with self.lock:
            self.excess += 3 * pixels - DECODED * size
            DECODED_GROWTH.check(self.excess, "With this file, small files decode to far more than their own size.")


def decode(
    data: Content,
    name: str,
    kinds: tuple[str, ...] | None = None,
    *,
    meter: Meter | None = None,
    convert: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Decode an image file to upright 8-bit values, C x H x W with 1 or 3 channels; `name` is for the error.

    Its bytes may be fetched by a function, so that not all files of a set are in memory.

    `meter` counts the file among those of its set. `convert` is applied to the values, while no other large image is
    in memory.
    """
    from PIL import Image

    if isinstance(data, Path) and not data.is_file():  # opening a pipe would wait for ever
        raise InputError(f"{name} cannot be read as an image: it is no file, or a link to none.")
    try:
        file, size = _file_and_size(data)
        with Image.open(file, formats=kinds or formats()) as image:
            _check(image)
            (meter or Meter()).add(image.width * image.height, size)
            return _values(image, convert)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except MemoryError:  # not the file's fault: with bad=skip it would be left out
        raise
    except Exception as error:  # Pillow's decoders raise a dozen kinds, and a bad file must never be a traceback
        raise InputError(f"{name} cannot be read as an image: {_reason(error)}.") from None


def _values(image: PillowImage.Image, convert: Callable[[np.ndarray], np.ndarray] | None) -> np.ndarray:
    is_large = image.width * image.height > _LARGE
    with _one_large if is_large else nullcontext():
        values = _channels_first(pil_values(_with_alpha(_upright(image))))
        return convert(values) if convert else values


def _channels_first(values: np.ndarray) -> np.ndarray:
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def _file_and_size(data: Content) -> tuple[BytesIO | Path, int]:
    if callable(data):
        data = data()
    if isinstance(data, bytes):
        return BytesIO(data), len(data)
    return data, data.stat().st_size


def _upright(image: PillowImage.Image) -> PillowImage.Image:
    """Turn an image as its camera noted; other images are returned as they are, not as a copy."""
    from PIL import ImageOps

    if image.getexif().get(_ORIENTATION, 1) == 1:
        return image
    return ImageOps.exif_transpose(image)


def _with_alpha(image: PillowImage.Image) -> PillowImage.Image:
    """Make an alpha channel where one colour, or some of a palette, stand for transparent."""
    if "transparency" not in image.info:
        return image
    if image.mode in ("1", "L"):
        return image.convert("LA")
    return image.convert("RGBA")


def _reason(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "its content is of no image format that is read here"
    return str(error).rstrip(".") or type(error).__name__


def _check(image: PillowImage.Image) -> None:
    """Refuse, from the header alone, what would not be read right."""
    width, height = image.size
    IMAGE_PIXELS.check(width * height, f"It claims {width}x{height} pixels.")
    if image.format != "MPO" and getattr(image, "is_animated", False):  # an MPO is a camera's JPEG with a preview
        raise InputError("It holds several pictures; save the one that is meant on its own.")
    if _scans(image) > _MOST_SCANS:
        raise InputError(f"It is a JPEG of more than {_MOST_SCANS} scans, which would take long; save it anew.")
    if _deep(image):
        raise InputError("It has 16 bits a value, which would be cut to 8; convert it to 8 bits first.")


def _scans(image: PillowImage.Image) -> int:
    """Count the scans of a JPEG file; its other bytes cannot pass for the start of one."""
    file = getattr(image, "fp", None)
    if image.format not in ("JPEG", "MPO") or file is None:
        return 0
    at = file.tell()
    file.seek(0)
    scans = file.read().count(b"\xff\xda")
    file.seek(at)
    return scans


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
