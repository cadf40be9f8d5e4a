from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from recollect import InputError
from recollect.auditing.compare import compare_audits, mcnemar
from recollect.auditing.thresholds import EXACT
from tests.auditing.making import images, small_audit
from tests.planted import Memorizer

STORED = images(12, 1)
QUICK: dict[str, Any] = {"masks": "half", "methods": "iterate", "given": STORED}


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_p_value_is_twice_the_binomial_tail(first: int, second: int) -> None:
    expected = min(1.0, 2 * float(binom.cdf(min(first, second), first + second, 0.5)))
    assert mcnemar(first, second) == pytest.approx(expected)
    assert mcnemar(first, second) == mcnemar(second, first)


def test_two_models_are_compared_image_by_image() -> None:
    whole = small_audit(model=Memorizer(STORED.pixels), **QUICK)
    part = small_audit(model=Memorizer(STORED.pixels[:3]), **QUICK)
    rows = compare_audits(whole, part, EXACT)
    assert [(row.set, row.method) for row in rows] == [
        ("train", "any attack"), ("train", "iterate"), ("control", "any attack"), ("control", "iterate"),
    ]  # fmt: skip
    train, control = rows[0], rows[2]
    assert (train.first, train.second, train.only_first, train.only_second, train.images) == (12, 3, 9, 0, 12)
    assert train.p_value == pytest.approx(2 / 2**9)
    assert (control.first, control.second, control.p_value) == (0, 0, 1.0)
    assert train.facts()["only_first"] == 9
    assert [rate.count for rate in train.rates] == [12, 3]


def test_audits_of_other_images_or_masks_are_refused() -> None:
    one = small_audit(model=Memorizer(STORED.pixels), **QUICK)
    with pytest.raises(InputError, match="different train images"):
        compare_audits(one, small_audit(**{**QUICK, "given": images(12, 5)}))
    with pytest.raises(InputError, match="different masks"):
        compare_audits(one, small_audit(model=Memorizer(STORED.pixels), **{**QUICK, "masks": "block"}))
    with pytest.raises(InputError, match="in different ways under the mask half"):
        compare_audits(one, small_audit(model=Memorizer(STORED.pixels), **QUICK, noise_std=0.1))
