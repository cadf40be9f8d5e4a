"""Pack the weight of a layer for tensor cores: in the order of its lowering, each value split into two TF32 numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.backend import contiguous
from recollect.accelerate.tf32x3.lowering import Lowering, can_fuse_upsampling, choose_lowering, packed_shape
from recollect.devices.tf32 import round_to_tf32, split_tf32


class Packed(NamedTuple):
    """A weight as the kernel reads it, of the shape `packed_shape`: the sum of two TF32 numbers."""

    upper: Tensor
    rest: Tensor


def packed_bytes(weight: Tensor) -> int:
    """Bound the memory of a packed weight: two parts, and two more if its convolution may fuse upsampling."""
    values = math.prod(packed_shape(weight.shape, choose_lowering(weight.shape)))  # no more with another stride
    if can_fuse_upsampling(weight.shape):
        values += math.prod(packed_shape(weight.shape, Lowering.UPSAMPLED))
    return 2 * weight.element_size() * values


def pack(weight: Tensor, lowering: Lowering = Lowering.IMPLICIT_GEMM) -> Packed:
    """Lay a weight out for a lowering, pad it with zeros to whole chunks, and split it."""
    taps = weight if weight.ndim == 4 else weight[:, :, None, None]
    if lowering is Lowering.UPSAMPLED:
        taps = sum_by_phase(taps)
    values = taps.permute(0, 2, 3, 1)
    if lowering is Lowering.IM2COL:
        values = values.flatten(1)[:, None, None]
    if lowering is Lowering.COL2IM:
        values = values.permute(1, 2, 0, 3).flatten(0, 2)[:, None, None]
    columns, _, _, channels = packed_shape(weight.shape, lowering)
    padding = (0, channels - values.shape[3], 0, 0, 0, 0, 0, columns - values.shape[0])
    values = contiguous(values)
    if any(padding):
        values = functional.pad(values, padding)
    upper, rest = split_tf32(values)
    return Packed(upper, round_to_tf32(rest).add_(values, alpha=0))  # NaN and infinity stay so


def sum_by_phase(taps: Tensor) -> Tensor:
    """Turn 3 x 3 taps on upsampled images into 2 x 2 taps on the images themselves, for each of four phases.

    The upper of two equal pixels has one tap on the pixel above and two on itself; the lower has two on itself and one
    on the pixel below.
    """
    down = _sum_pairs(taps.double(), 2)
    across = _sum_pairs(down, 4)  # phases down x phases across x columns x channels x 2 taps down x 2 across
    return across.transpose(0, 1).flatten(0, 2)


def _sum_pairs(taps: Tensor, along: int) -> Tensor:
    """Stack both phases of the taps, with two in place of three along this dimension."""
    one, two, three = taps.unbind(along)
    return torch.stack([torch.stack([one, two + three], along), torch.stack([one + two, three], along)])
