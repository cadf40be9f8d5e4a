"""Which pixels are erased: the six named masks, and masks of the user's own. True means kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect.degradation.base import Shape
from recollect.degradation.erasure import Erasure, fits
from recollect.errors import InputError, check_seed, is_whole
from recollect.images.pil_images import pil_values
from recollect.mask_names import (
    COLUMNS,
    PAPER_MASK_SUMMARIES,
    RANDOM,
    check_fraction,
    check_mask_file,
    is_mask_file,
    no_such_mask,
    read_fraction,
)

Sides = tuple[int, ...]  # height and width; the length of a signal; the number of columns of rows


@dataclass(frozen=True)
class NamedMask:
    """One of the masks of the experiments; a call with height and width returns the kept pixels."""

    name: str
    summary: str  # one line for help and docs
    kept: Callable[[Sides], np.ndarray]

    def __call__(self, *sides: int) -> np.ndarray:
        return self.kept(sides)


def _outside_block(sides: Sides) -> np.ndarray:
    if len(sides) == 1:
        return ~_centred(sides, max(1, sides[0] // 4))
    return ~_centred(sides, min(sides) // 2)


def _top_half(sides: Sides) -> np.ndarray:
    return _along_first(np.arange(sides[0]) < sides[0] // 2, sides)


def _half_of_pixels(sides: Sides) -> np.ndarray:
    return _fixed_draw(sides, erased=0.5, number=3)


def _inside_frame(sides: Sides) -> np.ndarray:
    if len(sides) == 1:
        return _centred(sides, max(1, 9 * sides[0] // 16))
    return _centred(sides, 3 * min(sides) // 4)


def _between_stripes(sides: Sides) -> np.ndarray:
    band = np.arange(sides[0]) // max(1, sides[0] // 16)
    return _along_first(band % 2 == 0, sides)


def _few_pixels(sides: Sides) -> np.ndarray:
    return _fixed_draw(sides, erased=0.8, number=6)


_DRAWN = {
    "block": _outside_block,
    "half": _top_half,
    "scatter": _half_of_pixels,
    "frame": _inside_frame,
    "stripes": _between_stripes,
    "dust": _few_pixels,
}
PAPER_MASKS = {name: NamedMask(name, summary, _DRAWN[name]) for name, summary in PAPER_MASK_SUMMARIES.items()}
"""The masks of the experiments, in the paper's numbering: mask 1 is `block`, mask 6 is `dust`.

On signals and rows they erase the same shares: `block` the middle quarter, `half` the second half, `frame` the ends.
"""


def mask(what: Any, shape: Shape, *, count: int = 1, seed: int = 42, columns: Sequence[str] = ()) -> Erasure:
    """Make the erasure that `what` names, for images of a shape.

    Args:
        what: One of the six names, `random:FRACTION`, `random-each:FRACTION`, `columns:age+3-5` for rows and signals,
            the path of a PNG or .npy file, or a boolean array (True: kept). An array has the shape H x W, C x H x W,
            or N x C x H x W for one mask per image.
        shape: The shape of one image, such as `images.shape`.
        count: Number of images for `random-each`.
        seed: Seed of random masks.
        columns: Names of the columns of rows, by which `columns:` may call them.

    Returns:
        The erasure.

    Examples:
        >>> import recollect
        >>> print(recollect.mask("block", (3, 8, 8)))
        25.0% erased
        >>> print(recollect.mask("columns:0+2-3", (6,)))
        50.0% erased
    """
    if isinstance(what, Erasure):
        return _from_array(what.keep, shape)
    if not isinstance(what, (str, Path)):
        return _from_array(what, shape)
    text = str(what)
    sides = _sides(shape)
    if text in PAPER_MASKS:
        return _from_array(PAPER_MASKS[text](*sides), shape)
    kind, colon, value = text.partition(":")
    if colon and kind in RANDOM:
        draws = count if kind == "random-each" else 1
        return random_mask(read_fraction(value), shape, count=draws, seed=seed)
    if colon and kind == COLUMNS:
        return _from_array(without_columns(value, shape, columns), shape)
    if is_mask_file(text):
        return _from_array(_read(Path(text)), shape)
    raise no_such_mask(text)


def random_mask(fraction: float, shape: Shape, *, count: int = 1, seed: int = 42) -> Erasure:
    """Erase each pixel with probability `fraction`; one draw for all images, or `count` draws.

    Of signals and rows exactly this share is erased, at least one value and not all: they may be short.
    """
    check_fraction(fraction)
    if not is_whole(count, 1):
        raise InputError(f"Masks are drawn for at least one image, got count={count!r}.")
    check_seed(seed)
    sides, rng = _sides(shape), np.random.default_rng(seed)
    if len(sides) == 2:
        return _from_array(rng.random((count, 1, *sides)) >= fraction, shape)
    drawn = _share_erased(rng.random((count, *sides)), fraction)
    return _from_array(drawn.reshape(count, *[1] * (len(shape) - 1), *sides), shape)


def without_columns(text: str, shape: Shape, columns: Sequence[str] = ()) -> np.ndarray:
    """Keep all but some columns of rows, or channels of signals: names or numbers from 0, `age+income` or `0+3-5`."""
    if len(shape) == 3:
        raise InputError(f"columns:{text} erases columns of rows or channels of signals; these are images.")
    keep = np.ones(shape, bool)
    for part in text.split("+"):
        keep[_column_numbers(part, shape[0], columns)] = False
    return keep


def _column_numbers(text: str, count: int, columns: Sequence[str]) -> list[int]:
    if text in columns:
        return [list(columns).index(text)]
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if match:
        first, last = int(match[1]), int(match[2] or match[1])
        if first <= last < count:
            return list(range(first, last + 1))
    raise InputError(f"There is no column {text!r}; columns have {_names(columns)}numbers from 0 to {count - 1}.")


def _names(columns: Sequence[str]) -> str:
    """List the first columns; the sentence names their numbers next."""
    if not columns:
        return ""
    more = ", ..." if len(columns) > 8 else ""
    return f"names {', '.join(columns[:8])}{more} or "


def _sides(shape: Shape) -> Sides:
    """Check the shape of an image, a signal or a row, and return its sides without channels."""
    whole = isinstance(shape, Sequence) and all(is_whole(side, 1) for side in shape)
    if not whole or len(shape) not in (1, 2, 3):
        given = tuple(shape) if isinstance(shape, (list, tuple)) else repr(shape)
        if isinstance(shape, torch.Tensor | np.ndarray):  # the images themselves, which are long to read
            given = f"a {type(shape).__name__} of shape {tuple(shape.shape)}"
        raise InputError(f"Images have a shape C x H x W, such as images.shape; got {given}.")
    return tuple(shape[1:] or shape)


def _centred(sides: Sides, length: int) -> np.ndarray:
    """Mark the centred square, or the centred run, of a length."""
    inside = np.zeros(sides, dtype=bool)
    inside[tuple(slice((side - length) // 2, (side - length) // 2 + length) for side in sides)] = True
    return inside


def _along_first(flags: np.ndarray, sides: Sides) -> np.ndarray:
    return np.broadcast_to(flags.reshape(-1, *[1] * (len(sides) - 1)), sides)


def _fixed_draw(sides: Sides, *, erased: float, number: int) -> np.ndarray:
    drawn = np.random.default_rng((42, number, *sides)).random(sides)
    return drawn >= erased if len(sides) == 2 else _share_erased(drawn, erased)


def _share_erased(drawn: np.ndarray, share: float) -> np.ndarray:
    """Erase a share of each row, those of the smallest numbers: at least one value and not all, unless it is 0 or 1."""
    length = drawn.shape[-1]
    count = round(share * length)
    if 0 < share < 1:
        count = min(max(count, 1), length - 1)
    return drawn.argsort(-1).argsort(-1) >= count


def _read(path: Path) -> np.ndarray:
    check_mask_file(path)
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        from PIL import Image

        with Image.open(path) as picture:
            values = pil_values(picture)
            return values if values.ndim == 2 else np.asarray(picture.convert("L"))
    except Exception as error:  # Pillow and numpy raise a dozen kinds on a broken file
        raise InputError(f"The mask file {path} cannot be read: {error}") from None


def _from_array(values: Any, shape: Shape) -> Erasure:
    """Check an array of kept values and give it the dimensions of the images, N x C x H x W."""
    array = _kept(_numbers(values))
    sides = _sides(shape)
    is_channels_last = array.ndim == 3 and array.shape[-1] == shape[0] and array.shape[0] != shape[0]
    if len(shape) == 3 and is_channels_last:
        array = np.moveaxis(array, -1, 0)
    missing = (1,) * (1 + len(shape) - array.ndim)
    array = array.reshape(missing + array.shape)
    if not fits(array.shape[1:], shape):
        own = "x".join(map(str, shape))
        if len(sides) == 2:
            own += " (C x H x W)"
        raise InputError(f"The mask has shape {tuple(np.shape(values))}; the images are {own}.")
    return Erasure(torch.from_numpy(np.array(array, order="C")))  # a copy: the array may be read-only


def _numbers(values: Any) -> np.ndarray:
    try:
        array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    except (TypeError, ValueError):  # a type that numpy does not have, or rows of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "buif":
        raise InputError(f"A mask is an array of kept (True) and erased (False) pixels, not {type(values).__name__}.")
    return array


def _kept(array: np.ndarray) -> np.ndarray:
    """Return where an array is white, if it is black and white."""
    if array.dtype == bool:
        return array
    levels = np.unique(array)
    if not (set(levels.tolist()) <= {0, 1} or set(levels.tolist()) <= {0, 255}):
        listed = ", ".join(f"{level:g}" for level in levels[:4])
        raise InputError(f"A mask is black (erased) or white (kept), nothing between; found {listed} ...")
    return array > 0
