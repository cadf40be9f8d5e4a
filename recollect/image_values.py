"""Values of each image of a batch: one answer an image, or one a pixel.

A pixel of an image is a position with all its channels. A value of a signal or a row is a pixel of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor


def per_image(flags: Tensor, like: Tensor) -> Tensor:
    """One value an image, shaped to meet images."""
    return flags.view(-1, *[1] * (like.ndim - 1))


def mean_square(difference: Tensor) -> Tensor:
    """Per image, over all its values."""
    return difference.flatten(1).square().mean(1)


def all_finite(x: Tensor) -> Tensor:
    return torch.isfinite(x).flatten(1).all(1)


def pixel_means(values: Tensor) -> Tensor:
    """Return the mean over the channels of each pixel: N x 1 x H x W for images."""
    return values.mean(1, keepdim=True) if values.ndim == 4 else values


def any_channel(flags: Tensor) -> Tensor:
    """Say of which pixels any channel is meant: N x 1 x H x W for images."""
    return flags.any(1, keepdim=True) if flags.ndim == 4 else flags


def first_channel(values: Tensor) -> Tensor:
    """Return one value a pixel, where channels are alike: N x 1 x H x W for images."""
    return values[:, :1] if values.ndim == 4 else values


def position_dimensions(values: Tensor) -> tuple[int, ...]:
    """List the dimensions along which positions lie: height and width, the length of a signal, the columns of rows."""
    return tuple(range(2, values.ndim)) or (1,)
