"""Conversions that a source address asks for: smaller, resized, grey."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.errors import InputError
from recollect.sources.address import Address
from recollect.sources.resize import resized, to_square

_AT_ONCE = 256  # images converted at a time, to spare memory
_LUMA = (19595, 38470, 7471)  # of red, green and blue in 65,536 parts: ITU-R 601, as Pillow computes it


@dataclass(frozen=True)
class Conversion:
    """What is done to each image: cut to a square of `size`, or resized to width and height; made grey."""

    size: int | None = None
    resize: tuple[int, int] | None = None
    grey: bool = False

    @classmethod
    def of(cls, address: Address) -> Conversion:
        return cls(address.size, address.resize, address.grey)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Convert ... x C x H x W; what is already as asked for stays as it is."""
        if self.grey and images.shape[-3] == 3:
            images = to_grey(images)
        if self.size is not None and images.shape[-2:] != (self.size, self.size):
            images = to_square(images, self.size)
        if self.resize is not None and images.shape[-2:] != self.resize[::-1]:
            images = resized(images, *self.resize)
        return images

    def all(self, images: np.ndarray) -> np.ndarray:
        """Convert many images, a few at a time."""
        if self == Conversion():
            return images
        if images.ndim != 4:
            raise InputError("size, resize and grey are for images; leave them out for signals and rows.")
        converted = self(images[:1])
        if converted.shape == images[:1].shape:
            return images
        result = np.empty((len(images), *converted.shape[1:]), images.dtype)
        for start in range(0, len(images), _AT_ONCE):
            result[start : start + _AT_ONCE] = self(images[start : start + _AT_ONCE])
        return result


def to_grey(images: np.ndarray) -> np.ndarray:
    """Return the luma of colour images, ... x 1 x H x W; for 8-bit values the same as Pillow's."""
    weights = np.array(_LUMA)
    if images.dtype == np.uint8:
        sums = np.tensordot(images.astype(np.int64), weights, axes=(-3, 0))
        return ((sums + 0x8000) >> 16).astype(np.uint8)[..., None, :, :]
    luma = np.tensordot(images, (weights / 65536).astype(images.dtype), axes=(-3, 0))
    return np.clip(luma, 0, 1)[..., None, :, :]  # rounding must not carry white beyond 1
