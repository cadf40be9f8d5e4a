"""Which pixels are erased: the six named masks, and masks of the user's own. True means kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect.degradation.base import Shape
from recollect.degradation.erasure import Erasure
from recollect.errors import InputError, check_seed, is_number, is_whole, read_share
from recollect.pil_images import pil_values
from recollect.registry import by_name

_FILES = (".png", ".npy")
_RANDOM = ("random", "random-each")


@dataclass(frozen=True)
class NamedMask:
    """One of the masks of the experiments; a call with height and width returns the kept pixels."""

    name: str
    summary: str  # one line for help and docs
    kept: Callable[[int, int], np.ndarray]

    def __call__(self, h: int, w: int) -> np.ndarray:
        return self.kept(h, w)


def _outside_block(h: int, w: int) -> np.ndarray:
    return ~_centred_square(h, w, min(h, w) // 2)


def _top_half(h: int, w: int) -> np.ndarray:
    return np.broadcast_to(np.arange(h)[:, None] < h // 2, (h, w))


def _half_of_pixels(h: int, w: int) -> np.ndarray:
    return _fixed_draw(h, w, erased=0.5, number=3)


def _inside_frame(h: int, w: int) -> np.ndarray:
    return _centred_square(h, w, 3 * min(h, w) // 4)


def _between_stripes(h: int, w: int) -> np.ndarray:
    band = np.arange(h) // max(1, h // 16)
    return np.broadcast_to((band % 2 == 0)[:, None], (h, w))


def _few_pixels(h: int, w: int) -> np.ndarray:
    return _fixed_draw(h, w, erased=0.8, number=6)


PAPER_MASKS = by_name(
    NamedMask("block", "erases the centred square of half the height (25%)", _outside_block),
    NamedMask("half", "erases the bottom half", _top_half),
    NamedMask("scatter", "erases each pixel with probability 1/2, one fixed draw", _half_of_pixels),
    NamedMask("frame", "erases all outside the centred square of 3/4 of the height (44%)", _inside_frame),
    NamedMask("stripes", "erases every second band of 1/16 of the height (50%)", _between_stripes),
    NamedMask("dust", "erases each pixel with probability 0.8, one fixed draw", _few_pixels),
)
"""The masks of the experiments, in the paper's numbering: mask 1 is `block`, mask 6 is `dust`."""


def mask(what: Any, shape: Shape, *, count: int = 1, seed: int = 42) -> Erasure:
    """Make the erasure that `what` names, for images of `shape`.

    `what` is one of the six names, `random:FRACTION` (shared by all images), `random-each:FRACTION` (another
    draw for each of `count` images), the path of a PNG or .npy file, or a boolean array (True: kept) of shape
    H x W, C x H x W, or N x C x H x W for one mask per image.
    """
    if isinstance(what, Erasure):
        return _from_array(what.keep, shape)
    if not isinstance(what, (str, Path)):
        return _from_array(what, shape)
    text = str(what)
    _, h, w = _check_shape(shape)
    if text in PAPER_MASKS:
        return _from_array(PAPER_MASKS[text](h, w), shape)
    if _is_random(text):
        kind, _, value = text.partition(":")
        draws = count if kind == "random-each" else 1
        return random_mask(_fraction(value), shape, count=draws, seed=seed)
    if _is_file(text):
        return _from_array(_read(Path(text)), shape)
    raise no_such_mask(text)


def is_mask(text: str) -> bool:
    """Return whether `mask` reads a text."""
    return text in PAPER_MASKS or _is_random(text) or _is_file(text)


def no_such_mask(text: str, others: Sequence[str] = ()) -> InputError:
    """Return the error that lists all masks, and examples of other degradations where these are possible."""
    known = ", ".join([*PAPER_MASKS, "random:FRACTION", "random-each:FRACTION", *others])
    return InputError(f"There is no mask {text!r}. Known: {known}, or the path of a .png or .npy file.")


def random_mask(fraction: float, shape: Shape, *, count: int = 1, seed: int = 42) -> Erasure:
    """Erase each pixel with probability `fraction`; one draw for all images, or `count` draws."""
    if not is_number(fraction) or not 0 <= fraction <= 1:
        raise InputError(f"The fraction of erased pixels must lie in [0, 1], got {fraction}.")
    if not is_whole(count, 1):
        raise InputError(f"Masks are drawn for at least one image, got count={count!r}.")
    check_seed(seed)
    _, h, w = _check_shape(shape)
    keep = np.random.default_rng(seed).random((count, 1, h, w)) >= fraction
    return _from_array(keep, shape)


def _is_random(text: str) -> bool:
    kind, colon, _ = text.partition(":")
    return kind in _RANDOM and bool(colon)


def _is_file(text: str) -> bool:
    return Path(text).suffix.lower() in _FILES


def _check_shape(shape: Shape) -> Shape:
    if not isinstance(shape, Sequence) or len(shape) != 3 or not all(is_whole(side, 1) for side in shape):
        given = tuple(shape) if isinstance(shape, (list, tuple)) else repr(shape)
        raise InputError(f"Images have a shape C x H x W, such as images.shape; got {given}.")
    return shape


def _centred_square(h: int, w: int, side: int) -> np.ndarray:
    inside = np.zeros((h, w), dtype=bool)
    top, left = (h - side) // 2, (w - side) // 2
    inside[top : top + side, left : left + side] = True
    return inside


def _fixed_draw(h: int, w: int, *, erased: float, number: int) -> np.ndarray:
    return np.random.default_rng((42, number, h, w)).random((h, w)) >= erased


def _fraction(text: str) -> float:
    try:
        return read_share(text)
    except ValueError:
        raise InputError(f"{text!r} is not a fraction; write random:0.3 or random:30%.") from None


def _read(path: Path) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"There is no mask file {path}.")
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
    """Check an array of kept values and give it the dimensions N x C x H x W."""
    array = _kept(_numbers(values))
    c, h, w = _check_shape(shape)
    if array.ndim == 3 and array.shape[-1] == c and array.shape[0] != c:
        array = np.moveaxis(array, -1, 0)
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if array.ndim != 4 or array.shape[1] not in (1, c) or array.shape[2:] != (h, w):
        raise InputError(f"The mask has shape {tuple(np.shape(values))}; the images are {c}x{h}x{w} (C x H x W).")
    return Erasure(torch.from_numpy(np.ascontiguousarray(array)))


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
