"""Float32 products on a GPU's tensor cores: each factor is the sum of two TF32 numbers, three of four products kept.

Errors were seen to be ten to a hundred times those of IEEE float32, since tensor cores cut off what a long sum cannot
hold, and less than a twentieth of those of TF32 alone. That is enough for the forward pass of training to the last
decade, whose loss is then measured in IEEE float32. It is not for recovery: of an FC-10 at a train loss of 1e-8 it took
6 to 10 dB off recovered images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from recollect.devices.precision import float32_precision

KEPT_BITS = -(1 << 13)  # sign, exponent and the ten bits of TF32's fraction
SPLIT = "float32 as three TF32 products"  # in records


class SplitProducts(TorchFunctionMode):
    """Inside, plain convolutions and linear layers run split; all else, and backward passes, run as they are set to."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (functional.conv2d, torch.conv2d) and _plain_convolution(args, kwargs):
            x, weight, bias, stride, padding = args[:5]
            return SplitConvolution.apply(x, weight, bias, stride, padding)
        if func is functional.linear and _plain_linear(args, kwargs):
            x, weight, bias = args
            return SplitLinear.apply(x, weight, bias)
        return func(*args, **kwargs)


class SplitConvolution(torch.autograd.Function):
    """conv2d with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: list[int], padding: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = [bias.numel()], list(stride), list(padding)
        with float32_precision("tf32"):
            return functional.conv2d(of_input(x), of_weight(weight), bias, stride, padding)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias, stride, padding = ctx.geometry
        wanted = list(ctx.needs_input_grad[:3])
        of_x, of_w, of_bias = torch.ops.aten.convolution_backward(
            gradients[0], x, weight, bias, stride, padding, [1, 1], False, [0, 0], 1, wanted
        )
        return of_x, of_w, of_bias, None, None


class SplitLinear(torch.autograd.Function):
    """x W^T + b with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        with float32_precision("tf32"):
            return functional.linear(of_input(x), of_weight(weight), bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        return gradient @ weight if ctx.needs_input_grad[0] else None, gradient.T @ x, gradient.sum(0)


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """x as the sum of a number that TF32 holds exactly and a small rest."""
    high = (x.view(torch.int32) & KEPT_BITS).view(torch.float32)
    return high, x - high


def of_input(x: Tensor) -> Tensor:
    """Side by side along the second dimension, so that one product sums high high, low high and high low."""
    high, low = split(x)
    return torch.cat([high, low, high], 1)


def of_weight(weight: Tensor) -> Tensor:
    high, low = split(weight)
    return torch.cat([high, high, low], 1)


def _plain_convolution(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Not dilated, not grouped, with numbers for padding and a bias, as `nn.Conv2d` calls it."""
    if kwargs or len(args) != 7 or args[2] is None or isinstance(args[4], str):
        return False
    return args[0].dtype == torch.float32 and tuple(args[5]) == (1, 1) and args[6] == 1


def _plain_linear(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if kwargs or len(args) != 3 or args[2] is None:
        return False
    return args[0].dtype == torch.float32 and args[0].ndim == 2
