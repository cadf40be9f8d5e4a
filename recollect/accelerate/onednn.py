"""Linear layers on a CPU in oneDNN, which comes with PyTorch.

It multiplies tens of images faster than PyTorch's default, once weights are in its own blocked order.
"""

from __future__ import annotations

import logging
import math
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.backend import Activation, LayerCall, LayerOutput, contiguous, passes_self_test

FEWEST_VALUES = 2**20  # of a weight: with fewer, recognising each call takes what is gained
ORDERED_FOR = 64  # images; for other numbers the order is the same, or oneDNN reorders at each call
MOST_VALUES = 2**31  # of a tensor; larger ones are left to PyTorch

log = logging.getLogger(__name__).info


class OneDnn:
    """Linear layers in oneDNN; PyTorch uses it for convolutions anyway."""

    description = "float32 in oneDNN for 32 images or more, else by the library"
    fewest_images = 32  # for fewer, PyTorch's default is as fast on some CPUs
    tile_rows = 1
    fuses_activations = False

    def takes(self, weight: Tensor) -> bool:
        return weight.ndim == 2 and weight.numel() >= FEWEST_VALUES

    def packed_bytes(self, weight: Tensor) -> int:
        return weight.nbytes

    def is_usable(self, _weights: list[Tensor]) -> bool:
        if not torch.backends.mkldnn.enabled:
            log("Layers run in PyTorch's kernels: oneDNN is switched off.")
            return False
        return works(platform.machine().lower())

    def accepts(self, call: LayerCall) -> bool:
        return max(call.x.numel(), call.weight.numel(), math.prod(call.output_shape)) < MOST_VALUES

    def fuse_upsampling(self, _call: LayerCall, _source: Tensor) -> None:
        return None

    def layout(self, _call: LayerCall) -> str:
        return "blocked"

    def pack(self, weight: Tensor, _layout: str) -> Tensor:
        return torch.ops.mkldnn._reorder_linear_weight(weight, ORDERED_FOR)

    def run(self, call: LayerCall, packed: Tensor, _activation: Activation | None) -> LayerOutput:
        rows = contiguous(call.x).view(call.x.shape[0], -1)
        out = torch.ops.mkldnn._linear_pointwise(rows, packed, call.bias, "none", [], "")
        return LayerOutput(out.view(call.output_shape), None)

    def compile_ahead(self, _run: Callable[[], Any]) -> None:
        """Do nothing: the library comes compiled."""

    def upsample(self, _maps: Tensor) -> None:
        return None

    def max_pool(self, _maps: Tensor) -> None:
        return None

    def admm_step(self, _values: int) -> None:
        return None


@cache
def works(machine: str) -> bool:
    """Say whether oneDNN runs here; PyTorch calls these operators itself, but does not document them."""
    if not torch.backends.mkldnn.is_available() or machine not in ("x86_64", "amd64"):
        log("Layers run in PyTorch's kernels: there is no oneDNN for x86 CPUs.")
        return False
    return passes_self_test("oneDNN", lambda: is_exact(OneDnn()), log)  # a version of PyTorch may be without it


def is_exact(kernels: OneDnn) -> bool:
    """Check that a layer has the errors of float32: fewer bits would make ten times as large ones."""
    generator = torch.Generator("cpu").manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")
        for shape in ((7, 1, 1, 600), (520, 600), (520,))
    )
    call = LayerCall(x, weight, bias)
    with torch.no_grad():
        out = kernels.run(call, kernels.pack(weight, kernels.layout(call)), None).values
    exact = functional.linear(x.double(), weight.double(), bias.double())
    return bool((out - exact).abs().max() < 1e-6 * exact.abs().max())
