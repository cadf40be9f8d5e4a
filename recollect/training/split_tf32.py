"""Run float32 layers on tensor cores: split each factor into two TF32 numbers and keep three of four products.

Errors are ten to a hundred times those of IEEE float32, because tensor cores cut off bits of long sums, and less than a
twentieth of those of TF32. That is enough for the forward pass of training, whose loss is measured in IEEE float32.
Recovery needs more: with this splitting, images recovered from an FC-10 at a train loss of 1e-8 lost 6 to 10 dB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from recollect.devices.precision import float32_precision
from recollect.devices.tf32 import split_tf32

SPLIT = "float32 as three TF32 products"  # in records


class SplitTF32(TorchFunctionMode):
    """Splits the forward passes of plain convolutions and linear layers; all else runs as usual."""

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
    """Compute conv2d with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: list[int], padding: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = [bias.numel()], list(stride), list(padding)
        with float32_precision("tf32"):
            return functional.conv2d(split_input(x), split_weight(weight), bias, stride, padding)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias, stride, padding = ctx.geometry
        needed = list(ctx.needs_input_grad[:3])
        input_gradient, weight_gradient, bias_gradient = torch.ops.aten.convolution_backward(
            gradients[0], x, weight, bias, stride, padding, [1, 1], False, [0, 0], 1, needed
        )
        return input_gradient, weight_gradient, bias_gradient, None, None


class SplitLinear(torch.autograd.Function):
    """Compute x W^T + b with split factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        with float32_precision("tf32"):
            return functional.linear(split_input(x), split_weight(weight), bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        input_gradient = gradient @ weight if ctx.needs_input_grad[0] else None
        return input_gradient, gradient.T @ x, gradient.sum(0)


def split_input(x: Tensor) -> Tensor:
    """Lay the parts side by side, so that one multiplication sums high by high, low by high and high by low."""
    high, low = split_tf32(x)
    return torch.cat([high, low, high], 1)


def split_weight(weight: Tensor) -> Tensor:
    """Lay the parts of a weight beside each other as `split_input` needs them."""
    high, low = split_tf32(weight)
    return torch.cat([high, high, low], 1)


def _plain_convolution(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether it is as `nn.Conv2d` calls it: with a bias and padding in numbers, not dilated, not grouped."""
    if kwargs or len(args) != 7 or args[2] is None or isinstance(args[4], str):
        return False
    return args[0].dtype == torch.float32 and tuple(args[5]) == (1, 1) and args[6] == 1


def _plain_linear(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if kwargs or len(args) != 3 or args[2] is None:
        return False
    return args[0].dtype == torch.float32 and args[0].ndim == 2
