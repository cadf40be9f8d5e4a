"""Lower resolution by an unknown factor: H replaces each block of pixels by its mean, which makes it a projection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate

from recollect.degradation.base import Degradation, Shape, check_images, read_whole_number
from recollect.errors import InputError


@dataclass(frozen=True, eq=False)
class Coarse(Degradation):
    """Blocks of `factor` by `factor` pixels (N or 1 whole numbers) hold their mean; the image keeps its size."""

    factor: Tensor

    name: ClassVar[str] = "coarse"
    summary: ClassVar[str] = "a lower resolution; each block of pixels holds its mean"
    example: ClassVar[str] = "coarse:4"
    order: ClassVar[int] = 20

    @classmethod
    def parse(cls, value: str, shape: Shape) -> Coarse:
        check_images(cls.name, shape)
        return cls(torch.tensor([read_whole_number(value, cls.example)]))

    def __post_init__(self) -> None:
        if not isinstance(self.factor, Tensor) or self.factor.ndim != 1 or self.factor.dtype != torch.int64:
            raise InputError("A lower resolution needs its factors as a tensor of N whole numbers.")

    def apply(self, x: Tensor) -> Tensor:
        factor, out = self.factor.view(-1, 1, 1, 1), x
        for known in factors_for(x)[1:]:  # for all images at once, whatever their own factor: no waiting for the device
            out = torch.where(factor == known, block_means(x, known), out)
        return out

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        return z + self.apply(y - z) / (1 + gamma / 2)  # H is a projection: only the part of z in its range moves

    def refit(self, x: Tensor, y: Tensor) -> Self:
        choices = factors_for(y)
        misfit = torch.stack([(block_means(x, known) - y).square().flatten(1).sum(1) for known in choices])
        return replace(self, factor=torch.tensor(choices, device=y.device)[misfit.argmin(0)])

    def paste(self, x: Tensor, y: Tensor) -> Tensor:
        """Give each block the mean that y has."""
        return x + self.apply(y - x)

    def expand(self, images: Tensor) -> Self:
        """Return one factor for each image, each dividing its sides."""
        check_images(self.name, images.shape[1:])
        impossible = sorted(set(self.factor.tolist()) - set(factors_for(images)))
        if impossible:
            size, possible = "x".join(map(str, images.shape[2:])), ", ".join(map(str, factors_for(images)))
            raise InputError(f"Images of {size} can be made coarser by {possible}, not by {impossible[0]}.")
        return super().expand(images)

    @classmethod
    def first_guess(cls, y: Tensor) -> Coarse:
        """Start from the full resolution."""
        return cls(torch.ones(len(y), dtype=torch.int64, device=y.device))

    def __str__(self) -> str:
        return f"means of {', '.join(f'{k}x{k}' for k in self.factor.unique().tolist()[:3])} pixels"


def factors_for(images: Tensor) -> list[int]:
    """List every factor that divides both sides."""
    common = math.gcd(*images.shape[-2:])
    return [factor for factor in range(1, common + 1) if common % factor == 0]


def block_means(x: Tensor, factor: int) -> Tensor:
    return interpolate(avg_pool2d(x, factor), scale_factor=factor, mode="nearest")
