"""Find out whether a model computes each image by itself: alone, in other company and at other positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

TOLERANCE = 1e-4  # of an image's largest value: rounding differs between batch sizes by far less
LAST_DIGITS = 1e-6  # a change of this share of the input shows how much a model enlarges rounding
ROUNDING_STEPS = 10  # up to so many times that effect is rounding too
COMPANIONS = 3


def batch_influence(run: Callable[[Tensor], Tensor], pixels: Tensor) -> float:
    """Return how far other images of a batch change an image's output, as a share of its largest value; 0 if rounding.

    `run` applies a deterministic model to a batch of any size.
    """
    return max(_influence(run, pixels, index) for index in sorted({0, len(pixels) // 2}))


def _influence(run: Callable[[Tensor], Tensor], pixels: Tensor, index: int) -> float:
    image = pixels[index : index + 1]
    alone = run(image)[0]
    largest = float(alone.abs().max()) or 1.0
    change = max(_distance(run(batch)[at], alone) for batch, at in _batches(pixels, index))
    rounding = ROUNDING_STEPS * _distance(run(image * (1 + LAST_DIGITS))[0], alone)
    return min(1.0, change / largest) if change > max(TOLERANCE * largest, rounding) else 0.0


def _distance(output: Tensor, other: Tensor) -> float:
    """Return the largest difference; NaN beside a number is infinitely far from it."""
    equal = (output == other) | (output.isnan() & other.isnan())
    return float((output - other).abs().nan_to_num(math.inf).where(~equal, 0.0).max())


def _batches(pixels: Tensor, index: int) -> Iterator[tuple[Tensor, int]]:
    """Yield batches that hold one image in different company, and its position in each."""
    image = pixels[index : index + 1]
    others = torch.cat([pixels[:index], pixels[index + 1 :]])[:COMPANIONS]
    strangers = 1 - torch.cat([image, others])[:COMPANIONS]  # unlike any image of the set
    yield torch.cat([image, strangers]), 0
    yield torch.cat([strangers, image]), len(strangers)
    if len(others):
        yield torch.cat([image, others]), 0
        yield torch.cat([others, image]), len(others)
        yield torch.cat([others[:1], image, strangers]), 1
