"""Copy between the host and a GPU through pinned memory.

Without it a copy is several times slower, and blocks other threads of the process while it waits for the device.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

PIECE = 2**24  # bytes at a time: the process keeps memory that it has pinned


def to_device(values: Tensor, device: torch.device | str, piece_bytes: int = PIECE) -> Tensor:
    """Copy values to a device: complete on return on the host, and for later work in the stream on a GPU."""
    device = torch.device(device)
    if {values.device.type, device.type} != {"cpu", "cuda"} or not values.numel() or not values.ndim:
        return values.to(device)
    rows = max(1, piece_bytes * len(values) // values.nbytes)
    try:
        return _in_pieces(values, rows, device)
    except (RuntimeError, TypeError):  # nothing can be pinned, or numpy has no such dtype; other errors come up again
        return values.to(device)


def to_host(values: Tensor, piece_bytes: int = PIECE) -> Tensor:
    """Copy values to the host for a short time: small ones stay in pinned memory, which saves a copy."""
    if values.device.type != "cuda" or values.nbytes > piece_bytes:
        return to_device(values, "cpu", piece_bytes)
    try:
        return _pinned(values)
    except RuntimeError:
        return values.cpu()


def _in_pieces(values: Tensor, rows: int, device: torch.device) -> Tensor:
    copy = torch.empty(values.shape, dtype=values.dtype, device=device)
    for number, (piece, target) in enumerate(zip(values.split(rows), copy.split(rows), strict=True)):
        if piece.is_cuda:
            _copy_on_host(target, _pinned(piece))
            continue
        if number:
            torch.cuda.current_stream(target.device).synchronize()  # else all pieces may be pinned at once
        pinned = _pinned_buffer(piece)
        _copy_on_host(pinned, piece)
        target.copy_(pinned, non_blocking=True)
    return copy


def _pinned(values: Tensor) -> Tensor:
    copy = _pinned_buffer(values).copy_(values, non_blocking=True)
    torch.cuda.current_stream(values.device).synchronize()
    return copy


def _copy_on_host(target: Tensor, values: Tensor) -> None:
    np.copyto(target.numpy(), values.numpy())  # on one thread: PyTorch's many take milliseconds to wake up


def _pinned_buffer(values: Tensor) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
