"""How arrays hold images, signals and rows: what each dimension means."""

from __future__ import annotations

import numpy as np

from recollect.errors import InputError

KINDS = ("images", "signals", "rows")
CHANNELS = (1, 3)  # of an image: grey or colour
EXPECTED = "expected N x C x H x W, N x H x W x C or N x H x W (images), N x C x L (signals) or N x d (rows)"
_DIMENSIONS = {"images": (3, 4), "signals": (2, 3), "rows": (2,)}  # with and without a dimension of channels


def arrange(array: np.ndarray, kind: str | None = None) -> np.ndarray:
    """Return a view N x C x H x W (images), N x C x L (signals) or N x d (rows), channels first.

    Without a `kind`, two dimensions are rows and four are images. Three dimensions are grey images N x H x W if their
    values are 8-bit or they are square, else signals.
    """
    if kind not in (None, *KINDS):
        raise InputError(f"There is no kind {kind!r}; it is {', '.join(KINDS)}.")
    if 0 in array.shape:
        raise InputError(f"There are no images here: shape {array.shape} is empty.")
    kind = kind or kind_of(array.shape, eight_bit=array.dtype == np.uint8)
    if array.ndim not in _DIMENSIONS[kind]:
        raise InputError(f"An array of shape {array.shape} does not hold {kind}; {EXPECTED}.")
    if kind != "rows" and array.ndim == min(_DIMENSIONS[kind]):
        array = array[:, None]  # the only channel
    return _channels_first(array) if kind == "images" else array


def looks_like_one_image(shape: tuple[int, ...]) -> bool:
    """Return whether three dimensions are likely C x H x W or H x W x C: there are no signals of this form."""
    return len(shape) == 3 and ((shape[0] in CHANNELS and 4 * shape[1] >= shape[2]) or shape[2] in CHANNELS)


def one_image(shape: tuple[int, ...]) -> str:
    """Say how a single image is given."""
    sentence = (
        f"Shape {shape} looks like one image; for one image use pixels[None], in a file np.save(FILE, pixels[None])."
    )
    return sentence if shape[0] in CHANNELS else f"{sentence} Signals have their channels first, N x C x L."


def kind_of(shape: tuple[int, ...], *, eight_bit: bool) -> str:
    """Say what an array of a shape holds, if nobody says otherwise."""
    if looks_like_one_image(shape):
        raise InputError(one_image(shape))
    if len(shape) == 3:
        return "images" if eight_bit or shape[1] == shape[2] else "signals"
    return "rows" if len(shape) == 2 else "images"


def _channels_first(images: np.ndarray) -> np.ndarray:
    """Move trailing channels to the front; files and arrays mostly store them last."""
    if images.shape[-1] in CHANNELS and images.shape[1] not in CHANNELS:
        return np.moveaxis(images, -1, 1)
    return images
