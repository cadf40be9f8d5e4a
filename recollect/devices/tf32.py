"""Split float32 numbers into TF32 parts, so that tensor cores can multiply them with little loss."""

from __future__ import annotations

import torch
from torch import Tensor

_DROPPED_BITS = 13  # TF32 has float32's sign and exponent, and 10 of its 23 bits of fraction


def round_to_tf32(x: Tensor) -> Tensor:
    """Round float32 numbers to the nearest TF32 numbers; ties go away from zero."""
    half_unit = 1 << (_DROPPED_BITS - 1)
    kept_bits = -(1 << _DROPPED_BITS)
    return (x.view(torch.int32) + half_unit).bitwise_and_(kept_bits).view(torch.float32)


def split_tf32(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nearest TF32 numbers and the rest in float32; of float32 numbers the sum is exact."""
    high = round_to_tf32(x.float())
    return high, (x - high).float()
