"""Images of another size: cut to squares and averaged down, exact on every machine, or resized by Pillow."""

from __future__ import annotations

import numpy as np

from recollect.errors import InputError


def overlaps(side: int, size: int) -> np.ndarray:
    """Return how much of pixel j of `side` lies in cell i of `size`, in units of 1/size pixel: whole numbers."""
    cells, pixels = np.arange(size)[:, None], np.arange(side)[None, :]
    end = np.minimum((cells + 1) * side, (pixels + 1) * size)
    return np.maximum(end - np.maximum(cells * side, pixels * size), 0).astype(np.float64)


def to_square(values: np.ndarray, size: int) -> np.ndarray:
    """Cut the largest centred square of ... x H x W and average it down to size x size; never enlarge it."""
    height, width = values.shape[-2:]
    side = min(height, width)
    if size > side:
        raise InputError(f"size={size} is larger than an image of {width}x{height}; images are only ever made smaller.")
    top, left = (height - side) // 2, (width - side) // 2
    square = values[..., top : top + side, left : left + side]
    return square if side == size else _averages(square, size)


def resized(images: np.ndarray, width: int, height: int) -> np.ndarray:
    """Resize all of ... x H x W to a width and height, also larger ones, by Pillow's antialiased bilinear filter."""
    from PIL import Image

    planes = images.reshape(-1, *images.shape[-2:])
    result = np.empty((len(planes), height, width), images.dtype)
    for plane, out in zip(planes, result, strict=True):
        values = plane if images.dtype == np.uint8 else plane.astype(np.float32)
        out[:] = np.asarray(Image.fromarray(values).resize((width, height), Image.Resampling.BILINEAR))
    return result.reshape(*images.shape[:-2], height, width)


def _averages(square: np.ndarray, size: int) -> np.ndarray:
    side = square.shape[-1]
    weights = overlaps(side, size)
    result = np.empty((*square.shape[:-2], size, size), square.dtype)
    for cell in range(size):  # one row of cells at a time: a large photograph is never all floats
        rows = slice(cell * side // size, -(-(cell + 1) * side // size))
        sums = (weights[cell, rows] @ square[..., rows, :].astype(np.float64)) @ weights.T
        # For 8-bit values these sums are whole numbers below 2**53: exact, whatever order they were added in.
        means = sums / side**2
        result[..., cell, :] = np.floor(means + 0.5) if square.dtype == np.uint8 else means
    return result
