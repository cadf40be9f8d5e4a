"""Float32 products on a GPU's tensor cores: each factor is the sum of two TF32 numbers, three of four products kept.

Relative errors of about 1e-6 (TF32 alone: 5e-4) are small enough for the forward pass of training to the last decade.
A loss that is reported is measured in IEEE float32 all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

KEPT_BITS = -(1 << 13)  # sign, exponent and the ten bits of TF32's fraction


class SplitProducts(TorchFunctionMode):
    """Inside, convolutions and linear layers with a gradient run split; backward passes run as they are set to."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (functional.conv2d, torch.conv2d) and _plain_convolution(args, kwargs):
            x, weight, bias, stride, padding = args[:5]
            return SplitConvolution.apply(x, weight, bias, stride, padding)
        if func is functional.linear and len(args) == 3 and args[0].ndim == 2:
            return SplitLinear.apply(*args)
        return func(*args, **kwargs)


class SplitConvolution(torch.autograd.Function):
    """conv2d with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: list[int], padding: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = [bias.numel()], list(stride), list(padding)
        return functional.conv2d(*factors(x, weight), bias, stride, padding)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias, stride, padding = ctx.geometry
        wanted = list(ctx.needs_input_grad[:3])
        found = torch.ops.aten.convolution_backward(
            gradients[0], x, weight, bias, stride, padding, [1, 1], False, [0, 0], 1, wanted
        )
        return *found, None, None


class SplitLinear(torch.autograd.Function):
    """x W^T + b with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return functional.linear(*factors(x, weight), bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        return gradient @ weight if ctx.needs_input_grad[0] else None, gradient.T @ x, gradient.sum(0)


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """x as the sum of a number that TF32 holds exactly and a small rest."""
    high = (x.view(torch.int32) & KEPT_BITS).view(torch.float32)
    return high, x - high


def factors(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Side by side along the second dimension, so that one product sums high high, low high and high low."""
    (high, low), (weight_high, weight_low) = split(x), split(weight)
    return torch.cat([high, low, high], 1), torch.cat([weight_high, weight_high, weight_low], 1)


def _plain_convolution(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Not dilated, not grouped, with numbers for padding and a bias, as `nn.Conv2d` calls it."""
    if kwargs or len(args) != 7 or args[2] is None or isinstance(args[4], str):
        return False
    return tuple(args[5]) == (1, 1) and args[6] == 1
