import numpy as np
import pytest

from recollect import InputError
from recollect.canaries.design import Design, Rule


def test_small_errors_are_guessed_in_and_large_ones_out() -> None:
    errors = np.array([0.5, 0.1, 0.9, np.nan, 0.2, 0.3, 0.4, 0.6])
    inside = np.array([False, True, False, False, True, True, True, False])
    assert Rule(1 / 4, 1 / 4).counts(8) == (2, 2)
    assert Rule(1 / 4, 1 / 4).correct(errors, inside) == 4  # an error that is not finite is the largest
    assert Rule(1 / 4, 1 / 4).correct(errors, ~inside) == 0
    assert Rule(1 / 4, 0.0).correct(errors, inside) == 2
    assert Rule(0.0, 0.0).correct(errors, inside) == 0


def test_equal_errors_do_not_tell_coins() -> None:
    inside = np.array([False, False, True, True])
    assert Rule(1 / 2, 0.0).correct(np.zeros(4), inside) == 0  # by position, though the other two are in


def test_the_risk_is_shared_by_all_tests() -> None:
    design = Design(rules=(Rule(1 / 4, 0.0), Rule(1 / 8, 0.0)))
    assert design.level(groups=5) == pytest.approx(0.05 / 10)


def test_it_is_read_as_it_was_written() -> None:
    assert Design.of(Design(0, 0.9).facts()) == Design(0, 0.9)


@pytest.mark.parametrize("wrong", [{"delta": 1}, {"delta": -1e-9}, {"delta": "1e-5"}, {"confidence": 1}])
def test_what_is_no_probability_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="is a probability"):
        Design(**wrong)  # type: ignore[arg-type]
