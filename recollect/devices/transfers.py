"""Between the host and a GPU by way of pinned memory.

Without it a copy is several times slower, and while it waits for the device others of the process wait for it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

PIECE = 2**24  # bytes at a time: what is pinned once stays with the process


def moved(values: Tensor, device: torch.device | str) -> Tensor:
    """On this device; on the host all is there when this returns, on a GPU for what follows in the stream."""
    device = torch.device(device)
    if {values.device.type, device.type} != {"cpu", "cuda"} or not values.numel() or not values.ndim:
        return values.to(device)
    rows = max(1, PIECE * len(values) // values.nbytes)
    try:
        return _in_pieces(values, rows, device)
    except (RuntimeError, TypeError):  # none can be pinned, or numpy has no such type; all else comes up again
        return values.to(device)


def on_host(values: Tensor) -> Tensor:
    """On the host, for a short time: what is small comes from a GPU in pinned memory and stays there."""
    if values.device.type != "cuda" or values.nbytes > PIECE:
        return moved(values, "cpu")
    try:
        return _pinned(values)
    except RuntimeError:
        return values.cpu()


def _in_pieces(values: Tensor, rows: int, device: torch.device) -> Tensor:
    there = torch.empty(values.shape, dtype=values.dtype, device=device)
    for number, (piece, place) in enumerate(zip(values.split(rows), there.split(rows), strict=True)):
        if piece.is_cuda:
            _copy_on_host(place, _pinned(piece))
            continue
        if number:
            torch.cuda.current_stream(place.device).synchronize()  # else all pieces may come to be pinned
        _copy_on_host(pinned := _room_for(piece), piece)
        place.copy_(pinned, non_blocking=True)
    return there


def _pinned(values: Tensor) -> Tensor:
    here = _room_for(values).copy_(values, non_blocking=True)
    torch.cuda.current_stream(values.device).synchronize()
    return here


def _copy_on_host(place: Tensor, values: Tensor) -> None:
    np.copyto(place.numpy(), values.numpy())  # on one thread: PyTorch's many take milliseconds to wake up


def _room_for(values: Tensor) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
