"""Recognise calls of PyTorch's functions that kernels can replace, as the modules of `nn` make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.backend import Activation, LayerCall


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> LayerCall | None:
    """Read a call of `functional.linear`; None if it is invalid, or of one row, which PyTorch multiplies well."""
    if weight.ndim != 2 or x.ndim < 2 or x.shape[-1] != weight.shape[1] or not _bias_fits(bias, weight):
        return None
    rows = x.reshape(-1, 1, 1, x.shape[-1])
    return LayerCall(rows, weight, bias) if rows.shape[0] > 1 else None


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Any
) -> LayerCall | None:
    """Read a call of `torch.conv2d` with settings as `nn.Conv2d` gives them; None if it is another, or invalid."""
    fits = weight.ndim == x.ndim == 4 and x.shape[1] == weight.shape[1] and _bias_fits(bias, weight)
    if not fits or not is_plain_convolution(stride, padding, dilation, groups):
        return None
    return LayerCall(x.permute(0, 2, 3, 1), weight, bias, stride[0], padding)


def _bias_fits(bias: Tensor | None, weight: Tensor) -> bool:
    return bias is None or bias.shape == weight.shape[:1]


def is_plain_convolution(stride: Any, padding: Any, dilation: Any, groups: Any) -> bool:
    """Say whether a convolution is neither dilated nor grouped, and has one stride for both directions."""
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in (stride, padding, dilation))
    return pairs and stride[0] == stride[1] > 0 and min(padding) >= 0 and dilation == (1, 1) and groups == 1


LAYERS: dict[Any, Callable[..., LayerCall | None]] = {(functional.linear, 3): linear, (torch.conv2d, 7): convolution}


def activation_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Activation | None:
    """Read a call of an activation as `nn.LeakyReLU` or `nn.Softplus` makes it, if kernels can compute it."""
    if func is functional.leaky_relu and len(args) == 1:
        return _leaky_relu(kwargs or {})
    if func is functional.softplus and args[1:] == (1.0, 20.0) and not kwargs:
        return Activation("softplus")
    return None


def _leaky_relu(settings: dict[str, Any]) -> Activation | None:
    if settings.keys() != {"negative_slope", "inplace"} or settings["inplace"]:
        return None
    slope = settings["negative_slope"]
    return Activation("leaky_relu", float(slope)) if isinstance(slope, (int, float)) else None


DEFAULTS = {"size": None, "align_corners": None, "recompute_scale_factor": None, "antialias": False}


def is_upsampling(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
    """Recognise `functional.interpolate` by 2 to the nearest neighbour, as `nn.Upsample` calls it too."""
    if func is not functional.interpolate or len(args) != 1 or not kwargs:
        return False
    if kwargs.get("mode") not in ("nearest", "nearest-exact") or not _is_two(kwargs.get("scale_factor")):
        return False
    return all(kwargs.get(name, default) is default for name, default in DEFAULTS.items())


def _is_two(factor: Any) -> bool:
    """Say whether a scale factor is 2 in both directions."""
    factors = tuple(factor) if isinstance(factor, (tuple, list)) else (factor, factor)
    return len(factors) == 2 and all(isinstance(one, (int, float)) and one == 2 for one in factors)


MAX_POOL_SETTINGS = {
    "stride": (None, 2, (2, 2)),
    "padding": (0, (0, 0)),
    "dilation": (1, (1, 1)),
    "ceil_mode": (False,),
    "return_indices": (False,),
}


def is_max_pooling(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
    """Recognise `functional.max_pool2d` of 2 x 2 pixels with stride 2, as `nn.MaxPool2d` calls it too."""
    if func is not functional.max_pool2d or len(args) != 2 or args[1] not in (2, (2, 2)) or not kwargs:
        return False
    if kwargs.keys() != MAX_POOL_SETTINGS.keys():
        return False
    return all(kwargs[name] in allowed for name, allowed in MAX_POOL_SETTINGS.items())
