"""Erasure when nothing is known of what erased pixels hold: zero, another constant, noise, another image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from recollect.degradation.erasure import Erasure, half_kept

ROUNDING = 1e-10  # squared error below which two values are called equal
WINDOW = 7  # pixels on a side of the patches over which errors are averaged
COMMON = 0.02  # a colour that more than this share of the pixels have exactly is no photograph's own


@dataclass(frozen=True, eq=False)
class AnyFill(Erasure):
    """Erasure whose refit asks only how far x is from y: near at kept pixels, far at erased ones.

    Each image's own errors say what is near (Otsu's threshold between two kinds, on a log scale). Where `patches`
    is True (N booleans) errors are first averaged over WINDOW x WINDOW pixels: for masks with large holes.
    """

    patches: Tensor

    def refit(self, x: Tensor, y: Tensor) -> Self:
        error = (x - y).square().mean(1, keepdim=True)
        around = avg_pool2d(pad(error, (WINDOW // 2,) * 4, mode="replicate"), WINDOW, stride=1)
        error = torch.where(self.patches.view(-1, 1, 1, 1), around, error)
        near = (error + ROUNDING).log().flatten(1)
        return replace(self, keep=(near <= between_two_kinds(near)).view_as(error).expand_as(y))

    def plausible_refit(self, x: Tensor, y: Tensor) -> AnyFill:
        """Refit pixel by pixel: patches help to find large holes, but blur their edges."""
        return replace(self, patches=torch.zeros_like(self.patches)).refit(x, y)


def between_two_kinds(values: Tensor) -> Tensor:
    """Return Otsu's threshold of each row: the split into two groups with the largest variance between them."""
    ordered = values.sort(1).values
    sums, count = ordered.cumsum(1), values.shape[1]
    below = torch.arange(1, count, device=values.device)
    apart = sums[:, :-1] / below - (sums[:, -1:] - sums[:, :-1]) / (count - below)
    split = (below * (count - below) * apart.square()).argmax(1, keepdim=True)
    return ordered.gather(1, split)


def odd_ones_kept(y: Tensor) -> AnyFill:
    """Start by taking pixels of y's most common colour for erased; where none is common, half of all pixels."""
    return _start(y, patches=False)


def patches_kept(y: Tensor) -> AnyFill:
    """Start like `odd_ones_kept`, and average errors over patches in images that have no common colour."""
    return _start(y, patches=True)


def _start(y: Tensor, patches: bool) -> AnyFill:
    bits = y.float().flatten(2).view(torch.int32).long()
    colours = torch.stack([bits[:, c] * weight for c, weight in enumerate(_channel_multipliers(y.shape[1]))]).sum(0)
    common = colours == colours.mode(1).values[:, None]
    evident = common.float().mean(1) > COMMON
    guess = torch.where(evident[:, None], ~common, _half_of_pixels(y).flatten(1))
    return AnyFill(guess.view_as(y[:, :1]).expand_as(y), ~evident if patches else torch.zeros_like(evident))


def _half_of_pixels(y: Tensor) -> Tensor:
    return half_kept(y).keep[:, :1]


def _channel_multipliers(channels: int) -> list[int]:
    """Return odd numbers that keep different colours apart in one 64-bit sum."""
    return [pow(2654435761, c) % 2**31 | 1 for c in range(channels)]
