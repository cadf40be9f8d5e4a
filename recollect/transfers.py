"""Between the host and a GPU by way of pinned memory.

Without it a copy is several times slower, and while it waits for the device others of the process wait for it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

PIECE = 2**24  # bytes at a time: what is pinned once stays with the process


def moved(values: Tensor, device: torch.device | str) -> Tensor:
    """On this device; on the host all is there when this returns, in pinned memory if it is no more than a piece."""
    device = torch.device(device)
    if {values.device.type, device.type} != {"cpu", "cuda"} or not values.numel() or not values.ndim:
        return values.to(device)
    rows = max(1, PIECE * len(values) // values.nbytes)
    try:
        return _to_the_host(values, rows) if device.type == "cpu" else _to_a_gpu(values, rows, device)
    except (RuntimeError, TypeError):  # none can be pinned; or another reason, and then it comes up again
        return values.to(device)


def _to_a_gpu(values: Tensor, rows: int, device: torch.device) -> Tensor:
    there = torch.empty(values.shape, dtype=values.dtype, device=device)
    for piece, place in zip(values.split(rows), there.split(rows), strict=True):
        pinned = _room_for(piece)
        np.copyto(pinned.numpy(), piece.numpy())  # one thread: PyTorch's many take milliseconds to wake up
        place.copy_(pinned, non_blocking=True)
    return there


def _to_the_host(values: Tensor, rows: int) -> Tensor:
    if len(values) <= rows:
        return _pinned(values)
    here = torch.empty(values.shape, dtype=values.dtype)
    for piece, place in zip(values.split(rows), here.split(rows), strict=True):
        np.copyto(place.numpy(), _pinned(piece).numpy())
    return here


def _pinned(piece: Tensor) -> Tensor:
    here = _room_for(piece).copy_(piece, non_blocking=True)
    torch.cuda.current_stream(piece.device).synchronize()
    return here


def _room_for(piece: Tensor) -> Tensor:
    return torch.empty(piece.shape, dtype=piece.dtype, pin_memory=True)
