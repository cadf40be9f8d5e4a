"""Whatever a configuration holds, it is read as what it must be or refused in a sentence."""

import math
from typing import Any

import pytest

from recollect.diffusion.config_values import LEAST, MOST, Unusable, read_count, read_number, read_prediction

JUNK: list[Any] = ["x", [3], {}, True, math.nan, math.inf, -math.inf, 10**400]
KNOWN = ("epsilon", "sample")


def test_numbers_are_read_and_what_is_left_out_is_replaced() -> None:
    assert (read_count("part", {"n": 3}, "n", 7), read_count("part", {}, "n", 7)) == (3, 7)
    assert (read_number("part", {"n": 2}, "n", 7.0), read_number("part", {}, "n", 7.0)) == (2.0, 7.0)
    assert read_number("part", {"n": None}, "n", 7.0) == 7.0
    assert read_number("part", {"n": -2}, "n", 7.0, -MOST) == -2.0
    assert (read_prediction({"prediction_type": "sample"}, KNOWN), read_prediction({}, KNOWN)) == ("sample", "epsilon")


@pytest.mark.parametrize("value", [*JUNK[:-1], None, 0, -1, 2.0])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(Unusable, match=r"^its part has n = .*, which is no whole number of 1 or more$"):
        read_count("part", {"n": value}, "n", 1)


@pytest.mark.parametrize("value", [*JUNK, 0, -1, LEAST / 2, 2 * MOST])
def test_what_is_no_positive_number_within_bounds_is_refused(value: Any) -> None:
    with pytest.raises(Unusable, match=r"^its part has n = .*, which is no number from 1e-09 to 1e\+09$"):
        read_number("part", {"n": value}, "n", 1.0)


@pytest.mark.parametrize("value", [*JUNK, None, "v_prediction"])
def test_another_prediction_is_refused(value: Any) -> None:
    with pytest.raises(Unusable, match=r"^it predicts .*; known are epsilon, sample$"):
        read_prediction({"prediction_type": value}, KNOWN)


def test_a_long_value_is_cut_in_the_sentence() -> None:
    with pytest.raises(Unusable) as refused:
        read_number("part", {"n": "x" * 1000}, "n", 1.0)
    assert len(str(refused.value)) < 120
