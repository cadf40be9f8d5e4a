"""Products on a GPU's tensor cores: about as exact as the library's in float32, and faster."""

from __future__ import annotations

import logging
from functools import cache
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

from recollect.recovery.packing import FEWEST_CHANNELS, MOST_TERMS, Packed, Way, pack, packed_bytes
from recollect.recovery.products import (
    Activation,
    Call,
    Outcome,
    are_right,
    double,
    halve,
    move,
    processors_of,
    run_kernel,
)

TRIED = [(84, 48, 12), (84, 48, 24), (84, 48, 48), (378, 48, 48), (378, 48, 128)]  # one for each kind of tile ...
TRIED_SPATIAL = [(84, 3, 48), (84, 48, 3)]  # ... and for each way of convolutions: rows, channels and columns

note = logging.getLogger(__name__).info


class TensorCores:
    """Linear layers and convolutions, by a kernel of our own."""

    in_words = "float32 on tensor cores: three TF32 products, sums of 32 terms"
    fewest_images = 1
    computes_activations = True

    def __init__(self, device: torch.device) -> None:
        self._device, self._processors = device, processors_of(device)

    def take(self, weight: Tensor) -> bool:
        return weight.shape[1] >= FEWEST_CHANNELS or FEWEST_CHANNELS <= weight.shape[1:].numel() <= MOST_TERMS

    def packed_bytes(self, weight: Tensor) -> int:
        return packed_bytes(weight)

    def work_for(self, weights: list[Tensor]) -> bool:
        return all(_kernel_works(self._device, spatial) for spatial in {w.ndim == 4 for w in weights})

    def pack(self, weight: Tensor, way: Way) -> Packed:
        return pack(weight, way)

    def run(self, call: Call, packed: Packed, activation: Activation | None) -> Outcome:
        return run_kernel(call, packed, self._processors, activation)

    def double(self, maps: Tensor) -> Tensor:
        return double(maps)

    def halve(self, maps: Tensor) -> Tensor | None:
        return halve(maps)


@cache
def _kernel_works(device: torch.device, spatial: bool) -> bool:
    """Whether the kernel can be had: there are tensor cores and a compiler, and first products are right."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        note("Products run in the library: %s has no tensor cores for TF32.", torch.cuda.get_device_name(device))
        return False

    def first_products() -> bool:  # fail without triton or a compiler, or with a version of either that cannot
        shapes = [*TRIED, *(TRIED_SPATIAL if spatial else [])]
        cuts = product(shapes, (1, processors_of(device)))  # as for one processor, in whole sums, and in parts for all
        return all(_is_right(device, *shape, spatial, processors) for shape, processors in cuts) and _moves(device)

    return are_right("the kernel", first_products, note)


def _is_right(device: torch.device, rows: int, channels: int, columns: int, spatial: bool, processors: int) -> bool:
    """Whether a first product has the errors of float32: ten times as large they would be TF32's, or a slip."""
    generator = torch.Generator(device).manual_seed(0)
    of_x, taps = ((rows // 42, 6, 7, channels), (3, 3)) if spatial else ((rows, 1, 1, channels), (1, 1))
    x, weight, bias = (
        torch.randn(shape, device=device, dtype=torch.float32, generator=generator)
        for shape in (of_x, (columns, channels, *taps), (columns,))
    )
    padding = (taps[0] // 2, taps[1] // 2)
    call = Call(x, weight, bias, padding=padding)
    out = run_kernel(call, pack(weight, call.way), processors).values
    exact = functional.conv2d(x.permute(0, 3, 1, 2).double(), weight.double(), bias.double(), padding=padding)
    return bool((out.permute(0, 3, 1, 2) - exact).abs().max() < 1e-6 * exact.abs().max())


def _moves(device: torch.device) -> bool:
    """Whether a first step between two products is right."""
    w, v, of_y, of_w = torch.rand(4, 100, device=device, generator=torch.Generator(device).manual_seed(0))
    exact = of_y.double() + (1 - 2 * of_w.double()) * v + of_w.double() * w
    move(w, v, of_y, of_w)
    return bool((w - exact).abs().max() < 1e-6)
