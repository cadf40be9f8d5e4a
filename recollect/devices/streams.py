"""The CUDA streams beside the one of the work.

PyTorch hands out the same 32 streams over and over, so two made at different times can be one; a copy in the stream
that a graph is being captured in fails. Made in one go, they are three.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import torch


class SideStreams(NamedTuple):
    capturing: torch.cuda.Stream
    entering: torch.cuda.Stream
    leaving: torch.cuda.Stream


_made = threading.local()


def side_streams(device: torch.device) -> SideStreams:
    """One set a thread and device, for good: libraries keep workspaces for every stream they have seen."""
    if not hasattr(_made, str(device)):
        setattr(_made, str(device), SideStreams(*(torch.cuda.Stream(device) for _ in SideStreams._fields)))
    return getattr(_made, str(device))
