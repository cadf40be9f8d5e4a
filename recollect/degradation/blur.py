"""Gaussian blur of unknown width: H is a circular convolution, so everything is exact in the Fourier domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.fft import fft2, fftfreq, ifft2

from recollect.degradation.base import Degradation
from recollect.errors import InputError

WIDTHS = tuple(round(0.1 * i, 1) for i in range(41))  # those that a refit chooses from, in pixels
READABLE = 1e-3  # a frequency that is damped to less than this share is lost in float32's rounding


@dataclass(frozen=True, eq=False)
class Blur(Degradation):
    """Convolution with a Gaussian whose standard deviation is `width` pixels (N or 1); borders wrap around."""

    width: Tensor

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
        """The width of the grid that explains y best; |H x - y|^2 summed over frequencies, as Parseval allows."""
        x, y = fft2(x.double()), fft2(y.double())
        power, shared = x.abs().square().sum(1).flatten(1), (x * y.conj()).real.sum(1).flatten(1)
        widths = torch.tensor(WIDTHS, dtype=torch.float64, device=y.device)
        damping = gaussian(widths, y).flatten(1).T
        misfit = power @ damping.square() - 2 * shared @ damping
        return replace(self, width=widths[misfit.argmin(1)].to(self.width))

    def paste(self, x: Tensor, y: Tensor) -> Tensor:
        """Frequencies that the blur left readable are those of y, sharpened; the others stay."""
        damping = self._damping(y)
        return ifft2(torch.where(damping > READABLE, fft2(y) / damping.clamp(min=READABLE), fft2(x))).real

    @classmethod
    def first_guess(cls, y: Tensor) -> Blur:
        """Not blurred at all."""
        return cls(torch.zeros(len(y), dtype=y.dtype, device=y.device))

    def _damping(self, like: Tensor) -> Tensor:
        return gaussian(self.width.to(like.dtype), like)

    def __str__(self) -> str:
        return f"blurred by a Gaussian of {', '.join(f'{w:g}' for w in self.width.unique().tolist()[:3])} pixels"


def gaussian(widths: Tensor, like: Tensor) -> Tensor:
    """How much each frequency of an image is damped: len(widths) x 1 x H x W, between 0 and 1."""
    vertical, horizontal = (fftfreq(n, dtype=widths.dtype, device=like.device) for n in like.shape[-2:])
    square = vertical[:, None].square() + horizontal.square()
    return torch.exp(-2 * math.pi**2 * widths.view(-1, 1, 1, 1).square() * square)
