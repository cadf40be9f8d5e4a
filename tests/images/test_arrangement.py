import numpy as np
import pytest

from recollect.errors import InputError
from recollect.images.arrangement import arrange, kind_of, looks_like_one_image


@pytest.mark.parametrize(
    ("shape", "kind", "expected"),
    [
        ((5, 3, 8, 9), None, (5, 3, 8, 9)),
        ((5, 8, 9, 3), None, (5, 3, 8, 9)),
        ((5, 8, 9, 1), None, (5, 1, 8, 9)),
        ((5, 8, 8), None, (5, 1, 8, 8)),
        ((5, 8, 9), None, (5, 8, 9)),
        ((5, 8, 9), "images", (5, 1, 8, 9)),
        ((5, 8, 8), "signals", (5, 8, 8)),
        ((3, 8, 8), "signals", (3, 8, 8)),
        ((5, 40), "signals", (5, 1, 40)),
        ((5, 40), None, (5, 40)),
        ((5, 40), "rows", (5, 40)),
    ],
)
def test_dimensions_have_a_meaning(shape: tuple[int, ...], kind: str | None, expected: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).random(shape)
    arranged = arrange(array, kind)
    assert arranged.shape == expected
    assert np.shares_memory(arranged, array)


def test_8_bit_values_are_images() -> None:
    assert arrange(np.zeros((5, 8, 9), np.uint8)).shape == (5, 1, 8, 9)


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((5, 40), "images", "does not hold images"),
        ((5, 8, 9), "rows", "does not hold rows"),
        ((5, 3, 8, 8), "signals", "does not hold signals"),
        ((5,), None, r"does not hold images; expected N x C x H x W"),
        ((5, 0), None, r"shape \(5, 0\) is empty"),
        ((5, 8), "pictures", "no kind 'pictures'; it is images, signals, rows"),
        ((3, 20, 30), None, r"looks like one image; for one image use pixels\[None\]"),
        ((20, 30, 3), None, r"looks like one image; .* Signals have their channels first, N x C x L\."),
    ],
)
def test_other_shapes_are_refused(shape: tuple[int, ...], kind: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        arrange(np.zeros(shape), kind)


def test_a_few_signals_are_no_image() -> None:
    assert not looks_like_one_image((3, 2, 100))
    assert kind_of((3, 2, 100), eight_bit=False) == "signals"
