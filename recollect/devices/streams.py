"""CUDA streams beside the one that computes: for captures, and for copies to and from the device.

PyTorch hands out the same 32 streams over and over, so two made at different times can be the same. A copy in a stream
that is being captured fails. Three made together are distinct.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import torch


class SideStreams(NamedTuple):
    capturing: torch.cuda.Stream
    inputs: torch.cuda.Stream
    results: torch.cuda.Stream


_made = threading.local()


def side_streams(device: torch.device) -> SideStreams:
    """Return this thread's streams of a device, always the same: libraries keep a workspace for every stream."""
    if not hasattr(_made, str(device)):
        setattr(_made, str(device), SideStreams(*(torch.cuda.Stream(device) for _ in SideStreams._fields)))
    return getattr(_made, str(device))
