"""Sets are worked on in pieces of bounded size, so that memory does not grow with the number of images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from recollect.files.limits import MIB, Limit

# 16,384 images of 32x32x3. A method holds some ten times as much.
PIECE_BYTES = Limit("PIECE_BYTES", 192 * MIB, "bytes of the images, as float32, that are worked on at a time")


def piece_length(shape: Sequence[int]) -> int:
    """Return how many images of a shape make a piece."""
    return max(1, PIECE_BYTES.value // (4 * math.prod(shape)))


def pieces(count: int, shape: Sequence[int]) -> Iterator[slice]:
    """Cut a set of so many images of a shape in pieces."""
    length = piece_length(shape)
    for start in range(0, count, length):
        yield slice(start, min(start + length, count))
