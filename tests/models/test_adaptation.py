"""What is stated of a model: options are read and checked before it is opened."""

from typing import Any

import pytest

from recollect import InputError
from recollect.models import open_model
from tests.models.making import tiny


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_range": "1,-1"}, "the lower first"),
        ({"input_range": "wide"}, "input_range is numbers"),
        ({"input_range": "0,inf"}, "finite"),
        ({"input_range": "0"}, "two numbers"),
        ({"mean": 0.5}, "std is missing"),
        ({"mean": 0.5, "std": 0}, "std is above 0"),
        ({"mean": (1, 2), "std": 1}, "one a channel"),
        ({"mean": 127.5, "std": 127.5}, "divide mean and std by 255"),
        ({"mean": 0.5, "std": 0.5, "input_range": "-1,1"}, "not both"),
        ({"channels": 4}, "channels is 1"),
        ({"batch": 0}, "1 or more"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_model(tiny(), **options)
