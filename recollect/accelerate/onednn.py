"""Linear layers on a CPU in oneDNN, which comes with PyTorch: it multiplies tens of images faster than what PyTorch
calls for them, once the weights lie in the order that it reads them."""

from __future__ import annotations

import logging
import platform
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from recollect.accelerate.tf32x3.launch import Activation, Call, Outcome, are_right
from recollect.accelerate.tf32x3.packing import Way, as_it_lies

FEWEST = 2**20  # values of a weight: with fewer, looking at each call takes what is gained
ORDERED_FOR = 64  # images; for any other number the order is the same, or is made anew at each call

note = logging.getLogger(__name__).info


class OneDnn:
    """Linear layers by oneDNN; all else is the library's, which has it for convolutions anyway."""

    in_words = "float32 in oneDNN for 32 images or more, else by the library"
    fewest_images = 32  # for fewer the library is as fast on some CPUs
    computes_activations = False

    def take(self, weight: Tensor) -> bool:
        return weight.ndim == 2 and weight.numel() >= FEWEST

    def packed_bytes(self, weight: Tensor) -> int:
        return weight.nbytes

    def work_for(self, _weights: list[Tensor]) -> bool:
        if not torch.backends.mkldnn.enabled:
            note("Products run in the library: oneDNN is switched off.")
            return False
        return _works()

    def pack(self, weight: Tensor, _way: Way) -> Tensor:
        return torch.ops.mkldnn._reorder_linear_weight(weight, ORDERED_FOR)

    def run(self, call: Call, packed: Tensor, _activation: Activation | None) -> Outcome:
        rows = as_it_lies(call.x).view(call.x.shape[0], -1)
        out = torch.ops.mkldnn._linear_pointwise(rows, packed, call.bias, "none", [], "")
        return Outcome(out.view(call.outcome), None)

    def double(self, _maps: Tensor) -> None:
        return None

    def halve(self, _maps: Tensor) -> None:
        return None


@cache
def _works() -> bool:
    """Whether it can be had: PyTorch calls it in this way itself, but promises it to nobody."""
    if not torch.backends.mkldnn.is_available() or platform.machine().lower() not in ("x86_64", "amd64"):
        note("Products run in the library: there is no oneDNN for x86 CPUs.")
        return False
    return are_right("oneDNN", _is_right, note)  # a version of PyTorch may be without it


def _is_right() -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be of fewer bits, or a slip."""
    generator = torch.Generator("cpu").manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")
        for shape in ((7, 1, 1, 600), (520, 600), (520,))
    )
    kernels = OneDnn()
    with torch.no_grad():
        out = kernels.run(Call(x, weight, bias), kernels.pack(weight, Way.PLAIN), None).values
    exact = functional.linear(x.double(), weight.double(), bias.double())
    return bool((out - exact).abs().max() < 1e-6 * exact.abs().max())
