"""Pixel erasure: H is a diagonal of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from recollect.degradation.base import Degradation
from recollect.devices.transfers import to_device
from recollect.errors import InputError
from recollect.seeding import own_bytes


@dataclass(frozen=True, eq=False)
class Erasure(Degradation):
    """Values where `keep` is False are set to zero. `keep` is boolean, N or 1 x C or 1 x H x W."""

    keep: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.keep, Tensor) or self.keep.dtype != torch.bool or self.keep.ndim != 4:
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
        kept, erased = ((x - y).square().sum(1, keepdim=True), y.square().sum(1, keepdim=True))
        return replace(self, keep=(kept <= erased).expand_as(y))

    def expand(self, images: Tensor) -> Self:
        """Return one mask for each image, with all of its channels."""
        c, h, w = images.shape[1:]
        if self.keep.shape[1] not in (1, c) or self.keep.shape[2:] != (h, w):
            size = "x".join(map(str, self.keep.shape[1:]))
            raise InputError(f"The mask is {size}; the images are {c}x{h}x{w} (C x H x W).")
        each = super().expand(images)
        return replace(each, keep=each.keep.expand(-1, c, -1, -1))

    def __str__(self) -> str:
        return f"{1 - float(self.keep.float().mean()):.1%} erased"


def all_erased(y: Tensor) -> Erasure:
    """Start by trusting no value of y: the paper's choice for U-Nets."""
    return Erasure(torch.zeros_like(y, dtype=torch.bool))


def half_kept(y: Tensor, seed: int = 42) -> Erasure:
    """Start by keeping each value with probability 1/2, drawn for each image on its own: the paper's other choice."""
    length = y[0].numel()
    drawn = own_bytes(y, seed, -(-length // 8))
    bits = torch.from_numpy(np.unpackbits(drawn, axis=1, count=length)).view(torch.bool)
    return Erasure(to_device(bits, y.device).view(y.shape))
