"""Gaussian blur of unknown width: H is a circular convolution, so everything is exact in the Fourier domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.fft import fft2, fftfreq, ifft2

from recollect.degradation.base import Degradation, Shape, check_images, read_number
from recollect.errors import InputError

GRID = 64  # widths that a refit compares before it searches between two of them
HALVINGS = 16  # of the gap between these
FINEST = 1e-3  # pixels: widths are rounded to it, so that one which has settled is seen to repeat


@dataclass(frozen=True, eq=False)
class Blur(Degradation):
    """Convolution with a Gaussian whose standard deviation is `width` pixels (N or 1); borders wrap around."""

    width: Tensor

    name: ClassVar[str] = "blur"
    summary: ClassVar[str] = "a Gaussian blur; its width is a standard deviation in pixels"
    example: ClassVar[str] = "blur:1.5"
    order: ClassVar[int] = 10

    @classmethod
    def parse(cls, value: str, shape: Shape) -> Blur:
        check_images(cls.name, shape)
        return cls(torch.tensor([read_number(value, cls.example)]))

    def __post_init__(self) -> None:
        if not isinstance(self.width, Tensor) or self.width.ndim != 1 or not self.width.is_floating_point():
            raise InputError("A blur needs its widths as a tensor of N numbers, in pixels.")
        if not bool(((self.width >= 0) & (self.width < math.inf)).all()):
            raise InputError(f"A blur's width is a number of pixels, zero or more; got {self.width.tolist()[:4]}.")

    def apply(self, x: Tensor) -> Tensor:
        return ifft2(self._damping(x) * fft2(x)).real

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        g, damping = gamma / 2, self._damping(y)
        return ifft2((damping * fft2(y) + g * fft2(z)) / (damping.square() + g)).real

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """Fit the width to y: |H x - y|^2 is summed over frequencies, as Parseval allows."""
        x, y = fft2(x.double()), fft2(y.double())
        power = x.abs().square().sum(1).flatten(1)
        shared = (x * y.conj()).real.sum(1).flatten(1)
        widths = all_widths(y)
        damping = gaussian(widths, y).flatten(1).T
        best = (power @ damping.square() - 2 * shared @ damping).argmin(1)
        low = widths[(best - 1).clamp(min=0)]
        high = widths[(best + 1).clamp(max=GRID - 1)]
        square = square_frequencies(y, y.real.dtype).flatten()
        for _ in range(HALVINGS):  # towards where the misfit stops falling and begins to rise
            middle = (low + high) / 2
            damping = gaussian(middle, y).flatten(1)
            rising = (square * damping * (shared - power * damping)).sum(1) > 0
            low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
        return replace(self, width=((low + high) / 2 / FINEST).round().mul(FINEST).to(self.width))

    def expand(self, images: Tensor) -> Self:
        check_images(self.name, images.shape[1:])
        return super().expand(images)

    @classmethod
    def first_guess(cls, y: Tensor) -> Blur:
        """Start from no blur at all."""
        return cls(torch.zeros(len(y), dtype=y.dtype, device=y.device))

    def _damping(self, like: Tensor) -> Tensor:
        return gaussian(self.width.to(like.dtype), like)

    def __str__(self) -> str:
        return f"blurred by a Gaussian of {', '.join(f'{w:g}' for w in self.width.unique().tolist()[:3])} pixels"


def all_widths(images: Tensor) -> Tensor:
    """Return widths from 0 to half the longer side, where little but the mean is left; small ones lie closest."""
    share = torch.linspace(0, 1, GRID, dtype=torch.float64, device=images.device)
    return share.square() * max(images.shape[-2:]) / 2


def square_frequencies(like: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the square of each frequency of an image, in cycles per pixel: H x W."""
    vertical, horizontal = (fftfreq(n, dtype=dtype, device=like.device) for n in like.shape[-2:])
    return vertical[:, None].square() + horizontal.square()


def gaussian(widths: Tensor, like: Tensor) -> Tensor:
    """Return the factor that damps each frequency of an image: len(widths) x 1 x H x W, between 0 and 1."""
    square = square_frequencies(like, widths.dtype)
    return torch.exp(-2 * math.pi**2 * widths.view(-1, 1, 1, 1).square() * square)
