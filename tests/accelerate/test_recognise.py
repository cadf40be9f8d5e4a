from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.backend import Activation
from recollect.accelerate.recognise import activation_of, is_max_pooling, is_plain_convolution, is_upsampling


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
def test_plain_convolutions_are_known_by_their_settings(settings: tuple, known: bool) -> None:
    assert is_plain_convolution(*settings) is known


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
def test_activations_that_kernels_can_compute(func: Any, args: tuple, kwargs: dict | None, expected: Any) -> None:
    assert activation_of(func, args, kwargs) == expected


INTERPOLATE: dict[str, Any] = {"size": None, "align_corners": None, "recompute_scale_factor": None, "antialias": False}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"scale_factor": 2, "mode": "nearest"}, True),
        ({"scale_factor": 2.0, "mode": "nearest-exact"}, True),
        ({"scale_factor": (2, 2), "mode": "nearest"}, True),
        ({"scale_factor": [2.0, 2.0], "mode": "nearest"}, True),
        ({"scale_factor": torch.tensor(2.0), "mode": "nearest"}, False),
        ({"scale_factor": torch.tensor([2.0, 2.0]), "mode": "nearest"}, False),
        ({"scale_factor": (2, 2, 2), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "nearest", "align_corners": False}, False),
        ({"scale_factor": 3, "mode": "nearest"}, False),
        ({"scale_factor": (2, 1), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "bilinear"}, False),
        ({"scale_factor": 2, "mode": "bilinear", "align_corners": True}, False),
        ({"size": (8, 8), "mode": "nearest"}, False),
        ({"scale_factor": 2, "mode": "nearest", "recompute_scale_factor": True}, False),
    ],
)
def test_upsampling_is_known_by_its_settings(settings: dict[str, Any], expected: bool) -> None:
    x = (torch.rand(1, 3, 4, 4),)
    assert is_upsampling(functional.interpolate, x, INTERPOLATE | settings) is expected
    assert not is_upsampling(functional.grid_sample, x, INTERPOLATE | settings)
    assert not is_upsampling(functional.interpolate, (*x, None), INTERPOLATE | settings)


MAX_POOL: dict[str, Any] = {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}


@pytest.mark.parametrize(
    ("size", "changed", "expected"),
    [
        (2, {}, True),
        ((2, 2), {"stride": 2}, True),
        (2, {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}, True),
        (3, {}, False),
        ((2, 1), {}, False),
        (2, {"stride": 1}, False),
        (2, {"padding": 1}, False),
        (2, {"dilation": 2}, False),
        (2, {"ceil_mode": True}, False),
        (2, {"return_indices": True}, False),
    ],
)
def test_max_pooling_is_known_by_its_settings(size: Any, changed: dict[str, Any], expected: bool) -> None:
    assert is_max_pooling(functional.max_pool2d, (X, size), MAX_POOL | changed) is expected


def test_other_calls_are_no_max_pooling() -> None:
    assert not is_max_pooling(functional.avg_pool2d, (X, 2), MAX_POOL)
    assert not is_max_pooling(functional.max_pool2d, (X,), MAX_POOL)
    assert not is_max_pooling(functional.max_pool2d, (X, 2), None)
    assert not is_max_pooling(functional.max_pool2d, (X, 2), {"stride": None})
