"""How a layer becomes a matrix multiplication: its lowering, and the shape of its packed weight."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache

import torch

from recollect.accelerate.backend import LayerCall

CHUNK = 32  # terms that tensor cores sum up before float32 does
FEWEST_CHANNELS = 16  # fewer leave most of a chunk empty
MOST_TERMS = 64  # of few channels, or columns, at all taps
UPSAMPLED_TAPS = (3, 3)  # of convolutions whose upsampling is fused


class Lowering(Enum):
    """How a layer becomes a matrix multiplication."""

    IMPLICIT_GEMM = "shifted images, tap by tap"
    UPSAMPLED = "images before they are upsampled, with the taps of each of four phases summed"
    IM2COL = "what all taps see of each pixel, gathered first: for few channels"
    COL2IM = "every pixel with every tap, summed afterwards: for few columns"


def lowering_of(call: LayerCall) -> Lowering:
    return choose_lowering(call.weight.shape, call.stride, call.scale)


@lru_cache(4096)
def choose_lowering(weight: torch.Size, stride: int = 1, scale: int = 1) -> Lowering:
    """Choose by the shape of a weight, the stride, and the factor by which images are upsampled first."""
    columns, channels, *taps = weight
    if scale > 1:
        return Lowering.UPSAMPLED
    if math.prod(taps) > 1 and channels < FEWEST_CHANNELS:
        return Lowering.IM2COL
    if math.prod(taps) > 1 and stride == 1 and columns * math.prod(taps) <= MOST_TERMS:
        return Lowering.COL2IM
    return Lowering.IMPLICIT_GEMM


def can_fuse_upsampling(weight: torch.Size) -> bool:
    """Say whether a convolution with such a weight may read its images before they are upsampled."""
    return weight[2:] == UPSAMPLED_TAPS and weight[1] >= FEWEST_CHANNELS


def phases(scale: int) -> int:
    """Count the kinds of output pixels: the four that an upsampled pixel becomes have different taps."""
    return scale**2


def packed_shape(weight: torch.Size, lowering: Lowering) -> tuple[int, int, int, int]:
    """Columns x taps down x taps across x channels, in whole chunks.

    Upsampling has columns for each phase. Taps are channels for im2col, and columns for col2im.
    """
    columns, channels, down, across = (*weight, 1, 1)[:4]
    if lowering is Lowering.UPSAMPLED:
        return 4 * columns, 2, 2, whole_chunks(channels)
    if lowering is Lowering.IM2COL:
        return columns, 1, 1, whole_chunks(down * across * channels)
    if lowering is Lowering.COL2IM:
        return whole_chunks(down * across * columns), 1, 1, whole_chunks(channels)
    return columns, down, across, whole_chunks(channels)


def whole_chunks(count: int) -> int:
    """Round up to a multiple of the chunk that tensor cores sum up."""
    return -(-count // CHUNK) * CHUNK
