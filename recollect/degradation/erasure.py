"""Pixel erasure: H is a diagonal of zeros and ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from recollect.degradation.base import Degradation
from recollect.devices.transfers import to_device
from recollect.errors import InputError
from recollect.image_values import pixel_means
from recollect.seeding import own_bytes

DIMENSIONS = (2, 3, 4)  # of rows, signals and images


@dataclass(frozen=True, eq=False)
class Erasure(Degradation):
    """Pixel erasure: values where `keep` is False are set to zero.

    Args:
        keep: Boolean, N or 1 x C or 1 x H x W. For signals N or 1 x C or 1 x L, for rows N or 1 x d.

    Examples:
        >>> import torch
        >>> from recollect import Erasure
        >>> half = Erasure(torch.tensor([[True, True, False, False]]))
        >>> half.apply(torch.ones(1, 4))
        tensor([[1., 1., 0., 0.]])
        >>> print(half)
        50.0% erased
    """

    keep: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.keep, Tensor) or self.keep.dtype != torch.bool or self.keep.ndim not in DIMENSIONS:
            tensor = isinstance(self.keep, Tensor)
            given = f"{self.keep.dtype} of shape {tuple(self.keep.shape)}" if tensor else type(self.keep).__name__
            raise InputError(f"An erasure needs a boolean N x C x H x W tensor (True: kept), got {given}.")

    def apply(self, x: Tensor) -> Tensor:
        return torch.where(self.keep, x, 0)

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        g = gamma / 2
        return torch.where(self.keep, (y + g * z) / (1 + g), z)

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """Keep a value where keeping costs no more: (x - y)^2 when kept, y^2 when erased."""
        return replace(self, keep=(x - y).square() <= y.square())

    def paste(self, x: Tensor, y: Tensor) -> Tensor:
        """Give kept values those of y."""
        return torch.where(self.keep, y, x)

    def plausible_refit(self, x: Tensor, y: Tensor) -> Erasure:
        """Refit where a pixel is erased in all channels or in none."""
        kept, erased = pixel_means((x - y).square()), pixel_means(y.square())
        return replace(self, keep=(kept <= erased).expand_as(y))

    def expand(self, images: Tensor) -> Self:
        """Return one mask for each image, with all of its channels."""
        shape = images.shape[1:]
        if not fits(self.keep.shape[1:], shape):
            size, own = ("x".join(map(str, one)) for one in (self.keep.shape[1:], shape))
            raise InputError(f"The mask is {size}; the images are {own} (C x H x W).")
        each = super().expand(images)
        return replace(each, keep=each.keep.expand(-1, *shape))

    def __str__(self) -> str:
        return f"{1 - float(self.keep.float().mean()):.1%} erased"


def fits(mask: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether a mask of a shape covers images of a shape, with one channel for all or one for each."""
    if len(mask) != len(shape) or len(shape) == 1:
        return tuple(mask) == tuple(shape)
    return mask[0] in (1, shape[0]) and tuple(mask[1:]) == tuple(shape[1:])


def all_erased(y: Tensor) -> Erasure:
    """Start by trusting no value of y: the paper's choice for U-Nets."""
    return Erasure(torch.zeros_like(y, dtype=torch.bool))


def half_kept(y: Tensor, seed: int = 42) -> Erasure:
    """Start by keeping each value with probability 1/2: the paper's choice for fully connected networks.

    The values are drawn for each image on its own.
    """
    length = y[0].numel()
    drawn = own_bytes(y, seed, -(-length // 8))
    bits = torch.from_numpy(np.unpackbits(drawn, axis=1, count=length)).view(torch.bool)
    return Erasure(to_device(bits, y.device).view(y.shape))
