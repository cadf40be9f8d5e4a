from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.recognise import activation_of, is_usual
from recollect.accelerate.tf32x3.launch import Activation


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


X = torch.rand(3)
LEAKY = {"negative_slope": 0.2, "inplace": False}


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "expected"),
    [
        (functional.leaky_relu, (X,), LEAKY, Activation("leaky_relu", 0.2)),
        (functional.leaky_relu, (X,), LEAKY | {"inplace": True}, None),
        (functional.leaky_relu, (X,), LEAKY | {"negative_slope": 1}, Activation("leaky_relu", 1.0)),
        (functional.leaky_relu, (X,), LEAKY | {"negative_slope": np.float32(0.2)}, None),
        (functional.leaky_relu, (X,), LEAKY | {"negative_slope": torch.tensor(0.2)}, None),
        (functional.leaky_relu, (X,), {"negative_slope": 0.2}, None),
        (functional.leaky_relu, (X, 0.2), None, None),
        (functional.softplus, (X, 1.0, 20.0), None, Activation("softplus")),
        (functional.softplus, (X, 2.0, 20.0), None, None),
        (functional.softplus, (X, 1.0, 10.0), None, None),
        (functional.softplus, (X,), None, None),
        (functional.softplus, (X, 1.0, 20.0), {"out": X}, None),
        (functional.relu, (X,), {"inplace": False}, None),
        (torch.relu, (X,), None, None),
        (Tensor.shape.__get__, (X,), None, None),  # type: ignore[attr-defined]
    ],
)
def test_activations_that_the_kernel_knows(func: Any, args: tuple, kwargs: dict | None, expected: Any) -> None:
    assert activation_of(func, args, kwargs) == expected
