from typing import Any

import pytest
import torch
from torch.nn import functional

from recollect.recovery.layer_calls import is_usual, slope_of


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        (((1, 1), (1, 1), (1, 1), 1), True),
        (((2, 2), (0, 3), (1, 1), 1), True),
        (((1, 2), (1, 1), (1, 1), 1), False),
        (((1, 1), "same", (1, 1), 1), False),
        (((1, 1), (1,), (1, 1), 1), False),
        (((1, 1), (-1, 0), (1, 1), 1), False),
        (((0, 0), (1, 1), (1, 1), 1), False),
        ((1, 1, 1, 1), False),
        (((1, 1), (1, 1), (2, 2), 1), False),
        (((1, 1), (1, 1), (1, 1), 4), False),
    ],
)
def test_other_convolutions_are_left_to_the_library(settings: tuple, known: bool) -> None:
    assert is_usual(*settings) is known


@pytest.mark.parametrize(
    ("func", "kwargs", "slope"),
    [
        (functional.leaky_relu, {"negative_slope": 0.2, "inplace": False}, 0.2),
        (functional.leaky_relu, {"negative_slope": 0.2, "inplace": True}, None),
        (functional.leaky_relu, {"negative_slope": 0.2}, None),
        (functional.leaky_relu, None, None),
        (functional.relu, {"inplace": False}, None),
        (torch.relu, None, None),
    ],
)
def test_a_leaky_relu_that_leaves_its_input_alone(
    func: Any, kwargs: dict[str, Any] | None, slope: float | None
) -> None:
    assert slope_of(func, kwargs) == slope
