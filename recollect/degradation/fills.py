"""What erased pixels hold instead of zero. Whoever degrades an image knows it; the one who recovers does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from recollect.degradation.erasure import Erasure
from recollect.errors import InputError
from recollect.image_values import position_dimensions
from recollect.images import Images
from recollect.mask_names import FILL_SUMMARIES
from recollect.seeding import own_draws


@dataclass(frozen=True, eq=False)
class Filled(Erasure):
    """Values where `keep` is False are set to those of `fill`: N x C x H x W, or N x C x 1 x 1 for one colour.

    For a signal or a row one value stands for a colour.
    """

    fill: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fill.ndim != self.keep.ndim or len(self.fill) != len(self.keep):
            raise InputError(f"{len(self.keep)} masks need as many fills, got shape {tuple(self.fill.shape)}.")

    def apply(self, x: Tensor) -> Tensor:
        return torch.where(self.keep, x, self.fill)

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """Keep a value where keeping costs no more than the fill does."""
        return replace(self, keep=(x - y).square() <= (self.fill - y).square())


@dataclass(frozen=True)
class Fill:
    """One kind of values that erased pixels may hold."""

    name: str
    summary: str  # one line for help and docs
    values: Callable[[Tensor, int], Tensor]  # images, seed -> N x C x H x W, or N x C x 1 x 1 for one colour


def _black(x: Tensor, _seed: int) -> Tensor:
    return torch.zeros_like(x[:1]).expand_as(x)


def _one_colour(x: Tensor, seed: int) -> Tensor:
    channels = x.shape[1] if x.ndim == 4 else 1
    return _drawn((channels, *[1] * (x.ndim - 2)), x, seed)


def _noise(x: Tensor, seed: int) -> Tensor:
    return _drawn(tuple(x.shape[1:]), x, seed)


def _next_image(x: Tensor, _seed: int) -> Tensor:
    """Return the next image of the set, turned by 180 degrees so that it is no image of the set itself."""
    return x.roll(-1, 0).flip(position_dimensions(x))


def _drawn(shape: tuple[int, ...], x: Tensor, seed: int) -> Tensor:
    """Draw values for each image on its own, so that its neighbours in the set do not matter."""
    draws = [rng.random(shape, np.float32) for rng in own_draws(x, seed)]
    return torch.from_numpy(np.stack(draws)).to(x)


_VALUES = {"zero": _black, "constant": _one_colour, "noise": _noise, "images": _next_image}
FILLS = {name: Fill(name, summary, _VALUES[name]) for name, summary in FILL_SUMMARIES.items()}


def fill_erased(truth: Erasure, images: Images, kind: str, seed: int = 42) -> Erasure:
    """Return the same erasure of these images, with erased pixels that hold one of `FILLS`."""
    if kind not in FILLS:
        raise InputError(f"There is no fill {kind!r}; choose from {', '.join(FILLS)}.")
    if kind == "zero":
        return truth
    x = images.pixels
    return Filled(truth.expand(x).keep, FILLS[kind].values(x, seed))
