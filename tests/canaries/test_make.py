from typing import Any

import numpy as np
import pytest

from recollect import InputError
from recollect.canaries import make_canaries
from tests.auditing.making import images
from tests.canaries.making import small_canaries

LIKE = images(12, 3)


def test_a_seed_makes_the_same_canaries() -> None:
    again = make_canaries(LIKE, 40, repeats=(1, 2), seed=6)
    assert again.commitment == small_canaries().commitment
    assert make_canaries(LIKE, 40, repeats=(1, 2), seed=8).commitment != again.commitment


def test_coins_do_not_depend_on_images() -> None:
    others = make_canaries(images(15, 4, channels=1), 40, repeats=(1, 2), seed=6)
    assert np.array_equal(others.inside, small_canaries().inside)
    assert others.images.shape == (1, 8, 8)


def test_coins_are_fair_and_repeats_evenly_shared() -> None:
    canaries = make_canaries(LIKE, 300)
    assert 120 < canaries.inside.sum() < 180
    assert np.unique(canaries.repeats, return_counts=True)[1].tolist() == [100, 100, 100]
    assert canaries.known_repeats == 16


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"count": 59}, "60 or more: 20 for each of 3"),
        ({"count": 60.0}, "is a number of canaries"),
        ({"repeats": ()}, "different whole numbers"),
        ({"repeats": (1, 1)}, "different whole numbers"),
        ({"repeats": (0,)}, "different whole numbers"),
        ({"seed": -1}, "A seed is"),
        ({"delta": 2}, "delta is a probability"),
    ],
)
def test_mistakes(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        make_canaries(LIKE, **{"count": 60, **wrong})
