import math

import pytest

from recollect.report.numbers import (
    as_text,
    calendar_date,
    counted,
    decibels,
    decimals,
    flattened,
    grey_levels,
    named,
    percent,
    percent_above,
    percent_within,
    scientific,
    two_digits,
    whole_percent,
)
from recollect.scoring import percent_range


def test_rates_have_one_decimal() -> None:
    assert percent(0.125) == "12.5%"
    assert percent(1) == "100.0%"


def test_small_numbers_are_written_with_a_power_of_ten() -> None:
    assert scientific(5e-4) == "5.0\N{NARROW NO-BREAK SPACE}×\N{NARROW NO-BREAK SPACE}10⁻⁴"
    assert scientific(0.0) == "0"
    assert scientific(math.inf) == "–"


def test_unknown_numbers_are_a_dash() -> None:
    assert decimals(None) == decimals(math.nan) == "–"
    assert decimals(1.25, 2) == "1.25"


def test_errors_in_decibels_and_grey_levels() -> None:
    assert decibels(1e-7) == 70
    assert grey_levels(1.0) == 255


def test_one_thing_has_no_plural() -> None:
    assert [counted(number, "mask") for number in (0, 1, 6)] == ["0 masks", "1 mask", "6 masks"]


def test_any_fact_is_text() -> None:
    assert as_text(1234567) == "1\u202f234\u202f567"
    assert as_text(0.1) == "0.1"
    assert as_text(3e-9) == "3.0\N{NARROW NO-BREAK SPACE}×\N{NARROW NO-BREAK SPACE}10⁻⁹"
    assert as_text([]) == "none"
    assert as_text([True, None, "a"]) == "yes, –, a"
    assert as_text([{"a": 1, "b": 2}, {"a": 3}]) == "a 1, b 2; a 3"


def test_nested_facts_become_rows() -> None:
    assert list(flattened({"blind": {"gamma_x": 0.5}})) == [("blind gamma x", "0.5")]


def test_whole_percents_round_neither_to_nothing_nor_to_all() -> None:
    assert [whole_percent(share) for share in (0, 0.004, 0.5, 0.997, 1)] == ["0%", "0.4%", "50%", "99.7%", "100%"]
    assert percent_range(0.912, 1) == "91-100%"
    assert percent_range(0.912, 1, "–") == "91–100%"


def test_two_digits_stay_readable() -> None:
    values = (0.0, 0.0806, 5.7, 134.2, float("nan"))
    assert [two_digits(value) for value in values] == ["< 0.001", "0.081", "5.7", "134", "–"]


def test_dates_are_written_as_days() -> None:
    assert calendar_date("2026-11-18T02:00:00+00:00") == "18 Nov 2026"
    assert calendar_date(None) == calendar_date("soon") == ""


@pytest.mark.parametrize(
    ("share", "limit", "text"),
    [(1.0, 0.01, "100%"), (0.014, 0.01, "1.4%"), (0.01004, 0.01, "1.004%"), (0.9997, 0.5, "99.9%")],
)
def test_a_share_above_a_limit_is_written_above_it(share: float, limit: float, text: str) -> None:
    assert percent_above(share, limit) == text


@pytest.mark.parametrize(
    ("bound", "limit", "text"),
    [(0.00301, 0.01, "0.31%"), (0.0145, 0.02, "1.5%"), (0.00991, 0.00995, "0.995%"), (-0.1, 0.01, "0%")],
)
def test_a_bound_is_rounded_up_but_not_above_the_limit(bound: float, limit: float, text: str) -> None:
    assert percent_within(bound, limit) == text


def test_names_are_listed_as_in_a_sentence() -> None:
    assert [named(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
