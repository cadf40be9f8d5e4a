"""Products of few images on a GPU, cut along their sums: whole ones would leave most of it idle.

A product with 1024 columns for 64 images is 16 tiles of 64 x 64, on a GPU with over a hundred processors. In parts
along its sum it is some hundred tiles, added up afterwards. Only the order of the sum changes, and with it rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

TILE = 64
WAVES = 4  # tiles for each processor that are worth having
SHORTEST = 64  # sum of a part


class ThinProducts(TorchFunctionMode):
    """Inside, linear layers of few images run in parts on a GPU; all else runs as it is."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._tiles = WAVES * torch.cuda.get_device_properties(device).multi_processor_count

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is functional.linear and len(args) == 3 and _is_plain(*args[:2]):
            x, weight, bias = args
            parts = parts_for(len(x), len(weight), x.shape[1], self._tiles)
            if parts > 1:
                return linear_in_parts(x, weight, bias, parts)
        return func(*args, **(kwargs or {}))


def parts_for(rows: int, columns: int, length: int, tiles: int) -> int:
    """How often a sum of `length` is halved so that there are enough tiles; not for one row, which is no product."""
    have, parts = -(-rows // TILE) * -(-columns // TILE), 1
    while rows > 1 and 2 * parts * have <= tiles and length % (2 * parts) == 0 and length // (2 * parts) >= SHORTEST:
        parts *= 2
    return parts


def linear_in_parts(x: Tensor, weight: Tensor, bias: Tensor | None, parts: int) -> Tensor:
    """x W^T + b, summed over `parts` equal lengths of the inner dimension."""
    of_x = x.unflatten(1, (parts, -1)).transpose(0, 1)
    of_weight = weight.unflatten(1, (parts, -1)).permute(1, 2, 0)
    out = torch.bmm(of_x, of_weight).sum(0)
    return out if bias is None else out.add_(bias)


def _is_plain(x: Tensor, weight: Tensor) -> bool:
    return x.ndim == 2 and x.is_cuda and x.dtype == torch.float32 and x.is_contiguous() and weight.is_contiguous()
