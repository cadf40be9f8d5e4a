"""Values of each image of a batch: one answer an image."""

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
