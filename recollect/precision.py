"""How a network is run where its output is judged: in eval mode and full float32, everything restored after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import nn

Precision = Literal["ieee", "tf32"]


def _switches() -> list[object]:
    b = torch.backends
    return [b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn, b.mkldnn.matmul, b.mkldnn.conv]  # type: ignore[attr-defined]


@contextmanager
def float32_precision(precision: Precision) -> Iterator[None]:
    """Run float32 products as IEEE float32 or as TF32, without autocast; the caller's settings come back."""
    switches = _switches()
    before = [s.fp32_precision for s in switches]  # type: ignore[attr-defined]
    try:
        for switch in switches:
            switch.fp32_precision = precision  # type: ignore[attr-defined]
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        for switch, was in zip(switches, before, strict=True):
            switch.fp32_precision = was  # type: ignore[attr-defined]


@contextmanager
def as_judged(f: Any) -> Iterator[None]:
    """`f` in eval mode (where it is a module) and in IEEE float32; its mode and the caller's settings come back."""
    training = [m for m in f.modules() if m.training] if isinstance(f, nn.Module) else []
    try:
        for module in training:
            module.training = False
        with float32_precision("ieee"):
            yield
    finally:
        for module in training:
            module.training = True
