from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recollect.errors import InputError
from recollect.sources.resize import resized, to_square

Values = Callable[..., np.ndarray]


def slow_average(square: np.ndarray, size: int) -> list[list[int]]:
    """The definition, in fractions: each cell's mean, each pixel weighed by its share in the cell; half rounds up."""
    side = len(square)
    cell = Fraction(side, size)

    def share(i: int, j: int) -> Fraction:
        return max(min((i + 1) * cell, Fraction(j + 1)) - max(i * cell, Fraction(j)), Fraction(0))

    def mean(r: int, c: int) -> int:
        pixels = ((share(r, y) * share(c, x), int(square[y, x])) for y in range(side) for x in range(side))
        return int(sum(weight * value for weight, value in pixels) / cell**2 + Fraction(1, 2))

    return [[mean(r, c) for c in range(size)] for r in range(size)]


@given(side=st.integers(1, 9), data=st.data())
def test_averages_are_exact(side: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, side))
    seed = data.draw(st.integers(0, 999))
    square = np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)
    assert to_square(square, size).tolist() == slow_average(square, size)


def test_the_centred_square_is_kept(values: Values) -> None:
    wide = values(3, 4, 10)
    assert np.array_equal(to_square(wide, 4), wide[:, :, 3:7])
    assert np.array_equal(to_square(wide.transpose(0, 2, 1), 4), wide.transpose(0, 2, 1)[:, 3:7])


def test_floats_stay_floats() -> None:
    assert to_square(np.array([[0.0, 0.5], [0.5, 0.6]], np.float32), 1) == pytest.approx(0.4)


def test_nothing_is_enlarged(values: Values) -> None:
    with pytest.raises(InputError, match="size=7 is larger than an image of 9x6"):
        to_square(values(6, 9), 7)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_resizing_is_pillows_for_each_plane_and_may_enlarge(dtype: type, values: Values) -> None:
    images: np.ndarray = values(2, 3, 6, 9).astype(dtype)
    large = resized(images, 20, 5)
    assert (large.shape, large.dtype) == ((2, 3, 5, 20), dtype)
    expected = Image.fromarray(images[1, 2]).resize((20, 5), Image.Resampling.BILINEAR)
    assert np.array_equal(large[1, 2], np.asarray(expected))
