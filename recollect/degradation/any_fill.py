"""Erasure when nothing is known of what erased pixels hold: zero, another constant, noise, another image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from recollect.degradation.erasure import Erasure, half_kept
from recollect.image_values import first_channel, per_image, pixel_means

ROUNDING = 1e-10  # squared error below which two values are called equal
EXPLAINED = 1e-4  # squared error below which an estimate explains a pixel
COMMON = 0.02  # a colour that more than this share of the pixels have exactly is no photograph's own
MOST_CHANGES = 4  # of one pixel between kept and erased: refits come to an end and never cycle
SPREAD = 25  # kept pixels have squared errors up to so many times their median
FLAT = 1e-6  # squared differences of neighbours below this are all called smooth


@dataclass(frozen=True, eq=False)
class AnyFill(Erasure):
    """Erasure whose refit asks only how far x is from y: near at kept pixels, far at erased ones.

    Each image's own errors say what is near (Otsu's threshold between two kinds, on a log scale). A pixel changes at
    most MOST_CHANGES times, so repeated refits settle.
    """

    changes: Tensor  # how often each pixel has changed: N x 1 x H x W, or one for each value of signals and rows

    @classmethod
    def keeping(cls, pixels: Tensor, y: Tensor) -> AnyFill:
        """Keep these pixels in all channels of y; none has changed yet."""
        return cls(pixels.expand_as(y), torch.zeros_like(pixels, dtype=torch.uint8))

    def refit(self, x: Tensor, y: Tensor) -> Self:
        before = first_channel(self.keep)
        changed = (near_pixels(x, y) != before) & (self.changes < MOST_CHANGES)
        return replace(self, keep=(before ^ changed).expand_as(y), changes=self.changes + changed)

    def plausible_refit(self, x: Tensor, y: Tensor) -> AnyFill:
        """Refit whatever the pixels were before."""
        return near_ones_kept(x, y)


def near_ones_kept(x: Tensor, y: Tensor) -> AnyFill:
    """Keep the pixels of y that are near an estimate."""
    return AnyFill.keeping(near_pixels(x, y), y)


def near_pixels(x: Tensor, y: Tensor) -> Tensor:
    """Say which pixels of y are near x: all but evidently erased ones, else the lower of two kinds of errors."""
    errors = pixel_errors(x, y)
    erased = evidently_erased(errors, y)
    return torch.where(_any_pixel(erased), ~erased, _lower_kind(errors + ROUNDING))


def evidently_erased(errors: Tensor, y: Tensor, below: float = EXPLAINED) -> Tensor:
    """Say which pixels have a common colour of y, in images where every other pixel has an error below this."""
    common = of_common_colour(y)
    explained = (common | (errors < below)).flatten(1).all(1)
    return common & per_image(explained, common) & _any_pixel(~common)


def certain_ones_kept(x: Tensor, y: Tensor) -> Erasure:
    """Keep the pixels of y that are as near x as most near ones are, or all but evidently erased ones.

    A pixel that is kept by mistake then costs little when its value is pasted: no more than the errors of x itself.
    """
    errors, near = pixel_errors(x, y), near_pixels(x, y)
    typical = per_image(typical_error(errors, near), errors)
    certain = _any_pixel(evidently_erased(errors, y)) | (errors <= SPREAD * typical + ROUNDING)
    return Erasure((near & certain).expand_as(y))


def typical_error(errors: Tensor, near: Tensor) -> Tensor:
    """Return the median error of each image over its near pixels; NaN where there are none."""
    return torch.where(near, errors, torch.nan).flatten(1).nanmedian(1).values


def telling_pixels(near: Tensor, y: Tensor) -> Tensor:
    """Say which near pixels tell one image from another: not those of common colours, unless y has no others.

    A frame or a background that many images share is near whichever of these images an estimate is.
    """
    common = of_common_colour(y)
    return near & ~(common & _any_pixel(~common))


def pixel_errors(x: Tensor, y: Tensor) -> Tensor:
    """Return the squared error of each pixel, the mean over its channels."""
    return pixel_means((x - y).square())


def between_two_kinds(values: Tensor) -> Tensor:
    """Return Otsu's threshold of each row: the split into two groups with the largest variance between them."""
    ordered = values.sort(1).values
    sums, count = ordered.cumsum(1), values.shape[1]
    if count == 1:
        return ordered
    below = torch.arange(1, count, device=values.device)
    apart = sums[:, :-1] / below - (sums[:, -1:] - sums[:, :-1]) / (count - below)
    split = (below * (count - below) * apart.square()).argmax(1, keepdim=True)
    return ordered.gather(1, split)


def odd_ones_kept(y: Tensor) -> AnyFill:
    """Start by taking pixels of common colours of y for erased, and stay with that; else, half of all pixels."""
    common = of_common_colour(y)
    evident = _any_pixel(common)
    start = AnyFill.keeping(torch.where(evident, ~common, first_channel(half_kept(y).keep)), y)
    return replace(start, changes=start.changes + MOST_CHANGES * evident)


def smooth_ones_kept(y: Tensor) -> AnyFill:
    """Start by taking rough areas for erased: noise differs from its neighbours more than a picture does."""
    pictures = y if y.ndim == 4 else y.reshape(-1, 1, 1, y.shape[-1])  # a signal is a picture of one row
    around = pad(pictures, (1, 1, 1, 1), mode="replicate")
    above, below = around[:, :, :-2, 1:-1], around[:, :, 2:, 1:-1]
    left, right = around[:, :, 1:-1, :-2], around[:, :, 1:-1, 2:]
    rough = pixel_errors((above + below + left + right) / 4, pictures)
    rough = avg_pool2d(pad(rough, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return AnyFill.keeping(_lower_kind(rough.view_as(first_channel(y)) + FLAT), y)


def of_common_colour(y: Tensor) -> Tensor:
    """Say which pixels have a colour that is common in their image."""
    pixels = first_channel(y)
    bits = y.float().reshape(len(y), -1, pixels[0].numel()).view(torch.int32).long()  # N x channels x pixels
    colours = torch.zeros_like(bits[:, 0])
    for channel, multiplier in enumerate(_channel_multipliers(bits.shape[1])):
        colours += bits[:, channel] * multiplier
    ordered = colours.sort(1).values
    counts = torch.searchsorted(ordered, colours, right=True) - torch.searchsorted(ordered, colours)
    return (counts > max(1, COMMON * colours.shape[1])).view_as(pixels)


def _any_pixel(pixels: Tensor) -> Tensor:
    """Say of which images any pixel is meant, shaped to meet pixels."""
    return per_image(pixels.flatten(1).any(1), pixels)


def _lower_kind(values: Tensor) -> Tensor:
    """Say which values of each image are of the lower of two kinds, on a log scale."""
    logs = values.log().flatten(1)
    return (logs <= between_two_kinds(logs)).view_as(values)


def _channel_multipliers(channels: int) -> list[int]:
    """Return odd numbers that keep different colours apart in one 64-bit sum."""
    return [pow(2654435761, c) % 2**31 | 1 for c in range(channels)]
