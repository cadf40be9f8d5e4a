"""How a layer becomes products, and how its weight lies in memory for them: split into two TF32 numbers each."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recollect.devices.tf32 import round_to_tf32, split_tf32

CHUNK = 32  # terms that tensor cores add up, before float32 does
FEWEST_CHANNELS = 16  # fewer leave most of a chunk empty
MOST_TERMS = 64  # of few channels, or columns, at all taps
DOUBLED_TAPS = (3, 3)  # of convolutions that run on images as they were before they were doubled


class Way(Enum):
    """How a layer becomes products."""

    PLAIN = "of shifted images, tap by tap"
    DOUBLED = "of images as they were before every pixel was doubled"
    SPREAD = "of what all taps see, laid side by side first, where channels are few"
    GATHERED = "of every pixel with every tap, added up afterwards, where columns are few"


@lru_cache(4096)
def way_of(weight: torch.Size, stride: int = 1, scale: int = 1) -> Way:
    """For a weight of this shape, on images that are enlarged so before."""
    columns, channels, *taps = weight
    if scale > 1:
        return Way.DOUBLED
    if math.prod(taps) > 1 and channels < FEWEST_CHANNELS:
        return Way.SPREAD
    if math.prod(taps) > 1 and stride == 1 and columns * math.prod(taps) <= MOST_TERMS:
        return Way.GATHERED
    return Way.PLAIN


class Packed(NamedTuple):
    """A weight as the kernel reads it: columns x taps down x taps across x channels, these in whole chunks. For doubled
    images the columns of each phase; taps that are spread are channels, and those that are gathered columns."""

    upper: Tensor  # in TF32, and so is the rest
    rest: Tensor


def packed_shape(weight: torch.Size, way: Way) -> tuple[int, int, int, int]:
    columns, channels, down, across = (*weight, 1, 1)[:4]
    if way is Way.DOUBLED:
        return 4 * columns, 2, 2, _filled(channels)
    if way is Way.SPREAD:
        return columns, 1, 1, _filled(down * across * channels)
    if way is Way.GATHERED:
        return _filled(down * across * columns), 1, 1, _filled(channels)
    return columns, down, across, _filled(channels)


def _filled(count: int) -> int:
    """Up to whole chunks."""
    return -(-count // CHUNK) * CHUNK


def packed_bytes(weight: Tensor) -> int:
    """The memory that a weight takes at most: in two parts, and once more for doubled images if it may meet such."""
    values = math.prod(packed_shape(weight.shape, way_of(weight.shape)))  # with another stride no more
    if may_be_doubled(weight.shape):
        values += math.prod(packed_shape(weight.shape, Way.DOUBLED))
    return 2 * weight.element_size() * values


def may_be_doubled(weight: torch.Size) -> bool:
    """Whether images before a convolution with such a weight may be taken as they were before they were doubled."""
    return weight[2:] == DOUBLED_TAPS and weight[1] >= FEWEST_CHANNELS


def state_of(weight: Tensor) -> tuple[int, int]:
    """Its place in memory and its version, which tell whether it is still the same; in inference mode none is kept."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def pack(weight: Tensor, way: Way = Way.PLAIN) -> Packed:
    taps = weight if weight.ndim == 4 else weight[:, :, None, None]
    if way is Way.DOUBLED:
        taps = in_phases(taps)
    values = taps.permute(0, 2, 3, 1)
    if way is Way.SPREAD:
        values = values.flatten(1)[:, None, None]
    if way is Way.GATHERED:
        values = values.permute(1, 2, 0, 3).flatten(0, 2)[:, None, None]
    columns, _, _, channels = packed_shape(weight.shape, way)
    missing = (0, channels - values.shape[3], 0, 0, 0, 0, 0, columns - values.shape[0])
    values = functional.pad(as_it_lies(values), missing) if any(missing) else as_it_lies(values)
    upper, rest = split_tf32(values)
    rest = round_to_tf32(rest)
    return Packed(upper, rest.add_(values, alpha=0))  # what is no number stays so


def in_phases(taps: Tensor) -> Tensor:
    """Three by three taps on doubled images as two by two on the images themselves, for each of four phases: the upper
    of two equal pixels has one tap on the pixel above and two on itself, the lower two on itself and one below."""
    down = _halved(taps.double(), 2)
    across = _halved(down, 4)  # both phases down x both across x columns x channels x two taps down x two across
    return across.transpose(0, 1).flatten(0, 2)


def _halved(taps: Tensor, along: int) -> Tensor:
    """Both phases x taps, with two for three along this dimension."""
    one, two, three = taps.unbind(along)
    return torch.stack([torch.stack([one, two + three], along), torch.stack([one + two, three], along)])


def as_it_lies(values: Tensor) -> Tensor:
    """As they are, one after another: a negation may be pending."""
    return values.resolve_neg().contiguous()
