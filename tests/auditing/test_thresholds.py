import math
from typing import Any

import pytest

from recollect import InputError
from recollect.auditing.thresholds import APPROXIMATELY, EXACT, Threshold, read_threshold, supported_by


def test_a_threshold_is_read_by_name_or_as_an_error() -> None:
    assert (read_threshold("exact"), read_threshold("approximate")) == (EXACT, APPROXIMATELY)
    assert read_threshold("1e-4") == read_threshold(1e-4) == Threshold("own", 1e-4)
    assert read_threshold(5e-4) == APPROXIMATELY
    assert (str(EXACT), str(Threshold("own", 0.00125))) == ("MSE below 1e-07", "MSE below 0.00125")


@pytest.mark.parametrize("given", ["exactly", "", "0", "-1", "nan", "inf", 0, -1.0, math.nan, None, True, [1e-4]])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="A threshold is exact, approximate or a mean square error"):
        read_threshold(given)


def test_the_fit_decides_which_threshold_is_supported() -> None:
    assert supported_by(1e-9) == supported_by(1e-7) == EXACT
    assert supported_by(2e-7) == supported_by(1e-4) == supported_by(3.0) == supported_by(math.nan) == APPROXIMATELY
