"""Models that nearly copy their input: what they return is no evidence, where they go in the end is.

Such a model hardly moves any image, so every image seems to be a fixed point, and a damaged image explains itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from recollect.devices.transfers import to_device
from recollect.engine import Runtime
from recollect.image_values import all_finite, mean_square, per_image
from recollect.methods.iterate import Iterate
from recollect.methods.polish import REST

HARDLY = 0.05**2  # MSE by which a model moves an image that it hardly moves
FARTHER = 3.0  # distances: iterate ends this many first steps away where the model copies


def first_steps(f: Runtime, y: Tensor) -> Tensor:
    """Compute f(y) in batches that fit into memory; y itself where that is not finite."""
    first = torch.cat([f(to_device(part, f.device).clone()).to(y.device) for part in y.split(f.chunk)])
    return torch.where(per_image(all_finite(first), y), first, y)


def reach_of_iteration(y: Tensor, first: Tensor, end: Tensor) -> Tensor:
    """Compute how many first steps away iteration ends, for each image that the model copies; 1 for others.

    The model copies an image that it hardly moves at once, though iteration moves it far.
    """
    moved, way = mean_square(first - y), mean_square(end - y)
    copied = (moved < HARDLY) & (way > FARTHER**2 * moved)
    return torch.where(copied, (way / moved).sqrt(), 1.0)


def foreseen(f: Runtime, x: Tensor, output: Tensor, reach: Tensor) -> Tensor:
    """Foresee where iteration from x would end, if each step shrinks like the second one; no farther than the reach.

    Steps that do not shrink lead away from x, as far as iteration goes.
    """
    step, next_step = output - x, f(output.clone()) - output
    size = mean_square(step)
    ratio = (mean_square(next_step) / size).sqrt().nan_to_num(1.0)
    steps = torch.where(ratio < 1, torch.minimum(1 / (1 - ratio), reach), float(Iterate.limit))
    return x + per_image(torch.where(size < REST, 1.0, steps), x) * step
