"""What erased pixels hold instead of zero. Whoever degrades an image knows it; the one who recovers does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from recollect.degradation.erasure import Erasure
from recollect.errors import InputError
from recollect.images import Images
from recollect.seeding import own_draws

FILLS = ("zero", "constant", "noise", "images")


@dataclass(frozen=True, eq=False)
class Filled(Erasure):
    """Values where `keep` is False are set to those of `fill`: N x C x H x W, or N x C x 1 x 1 for one colour."""

    fill: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fill.ndim != 4 or len(self.fill) != len(self.keep):
            raise InputError(f"{len(self.keep)} masks need as many fills, got shape {tuple(self.fill.shape)}.")

    def apply(self, x: Tensor) -> Tensor:
        return torch.where(self.keep, x, self.fill)

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """Keep a value where keeping costs no more than the fill does."""
        return replace(self, keep=(x - y).square() <= (self.fill - y).square())


def fill_erased(truth: Erasure, images: Images, kind: str, seed: int = 42) -> Erasure:
    """The same erasure of these images with erased pixels that hold another `kind` of values.

    constant: one random colour an image; noise: random values; images: the next image of the set, turned by 180
    degrees, so that it is no image of the set itself.
    """
    if kind not in FILLS:
        raise InputError(f"There is no fill {kind!r}; choose from {', '.join(FILLS)}.")
    if kind == "zero":
        return truth
    x = images.pixels
    if kind == "images":
        fill = x.roll(-1, 0).flip(2, 3)
    else:
        shape = x.shape[1:] if kind == "noise" else (x.shape[1], 1, 1)
        draws = [rng.random(shape, np.float32) for rng in own_draws(x, seed)]
        fill = torch.from_numpy(np.stack(draws)).to(x)
    return Filled(truth.expand(x).keep, fill)
