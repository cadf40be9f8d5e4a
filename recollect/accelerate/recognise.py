"""Calls of PyTorch's functions that our kernels can do: layers, activations, doubling and halving, as the modules of
`nn` call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.tf32x3.launch import Activation, Call
from recollect.accelerate.tf32x3.packing import may_be_doubled


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Call | None:
    """A call of `functional.linear`; nothing where it is wrong, or a matrix and a vector: libraries do that well."""
    right = weight.ndim == 2 and x.ndim > 1 and x.shape[-1] == weight.shape[1] and _fits(bias, weight)
    rows = x.reshape(-1, 1, 1, x.shape[-1]) if right else x
    return Call(rows, weight, bias) if right and rows.shape[0] > 1 else None


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Call | None:
    """A call of `torch.conv2d` with the settings as `nn.Conv2d` gives them; nothing where it is another, or wrong."""
    right = weight.ndim == x.ndim == 4 and x.shape[1] == weight.shape[1] and _fits(bias, weight)
    if not right or not is_usual(stride, padding, dilation, groups):
        return None
    return Call(x.permute(0, 2, 3, 1), weight, bias, stride[0], padding)


def _fits(bias: Tensor | None, weight: Tensor) -> bool:
    return bias is None or bias.shape == weight.shape[:1]


def is_usual(stride: Any, padding: Any, dilation: Any, groups: Any) -> bool:
    """Neither dilated nor grouped, as far down as across."""
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in (stride, padding, dilation))
    return pairs and stride[0] == stride[1] > 0 and min(padding) >= 0 and dilation == (1, 1) and groups == 1


LAYERS: dict[Any, Callable[..., Call | None]] = {(functional.linear, 3): linear, (torch.conv2d, 7): convolution}


def activation_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Activation | None:
    """A call of an activation as `nn.LeakyReLU` and `nn.Softplus` make it, where the kernel knows it."""
    if func is functional.leaky_relu and kwargs and kwargs.keys() == {"negative_slope", "inplace"} and len(args) == 1:
        slope, inplace = kwargs["negative_slope"], kwargs["inplace"]
        return Activation("leaky_relu", float(slope)) if isinstance(slope, (int, float)) and not inplace else None
    usual = func is functional.softplus and args[1:] == (1.0, 20.0) and not kwargs
    return Activation("softplus") if usual else None


OTHERWISE_USUAL = {"size": None, "align_corners": None, "recompute_scale_factor": None, "antialias": False}


def doubles(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
    """A call of `functional.interpolate` that makes two pixels of each, down and across, as `nn.Upsample` does too."""
    if func is not functional.interpolate or len(args) != 1 or not kwargs:
        return False
    factor = kwargs.get("scale_factor")
    factors = tuple(factor) if isinstance(factor, (tuple, list)) else (factor, factor)
    twice = len(factors) == 2 and all(isinstance(one, (int, float)) and one == 2 for one in factors)
    nearest = kwargs.get("mode") in ("nearest", "nearest-exact")
    return twice and nearest and all(kwargs.get(name, usual) is usual for name, usual in OTHERWISE_USUAL.items())


HALVING = {
    "stride": (None, 2, (2, 2)),
    "padding": (0, (0, 0)),
    "dilation": (1, (1, 1)),
    "ceil_mode": (False,),
    "return_indices": (False,),
}


def halves(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
    """A call of `functional.max_pool2d` for the largest of each two by two pixels, as `nn.MaxPool2d` makes it too."""
    if func is not functional.max_pool2d or len(args) != 2 or args[1] not in (2, (2, 2)) or not kwargs:
        return False
    return kwargs.keys() == HALVING.keys() and all(kwargs[name] in usual for name, usual in HALVING.items())


def on_halves(call: Call, halves: Tensor) -> Call | None:
    """A convolution of images that were doubled, on what they were before; nothing where it is not of three by three
    taps that see a pixel's neighbours."""
    if not may_be_doubled(call.weight.shape) or call.stride != 1 or call.padding != (1, 1):
        return None
    return call._replace(x=halves.permute(0, 2, 3, 1), scale=2)
