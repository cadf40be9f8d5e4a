"""Images from noise: the deterministic sampler of Karras et al. 2022, for any denoiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from recollect.devices.model_call import call_of, leave_unchecked
from recollect.devices.precision import device_of, evaluation_mode
from recollect.diffusion.denoiser import Denoiser
from recollect.diffusion.preconditioning import HIGHEST, LOWEST
from recollect.errors import InputError, is_whole

RHO = 7.0  # how much closer together low noise levels are
STEPS = 20
CHUNK = 256


def noise_levels(denoiser: Denoiser, steps: int = STEPS) -> list[float]:
    """Choose noise levels from the highest to the lowest that sampling needs, and then zero."""
    low = max(LOWEST, denoiser.preconditioning.lowest)
    high = min(HIGHEST, denoiser.preconditioning.highest)
    ramp = np.linspace(high ** (1 / RHO), low ** (1 / RHO), steps) ** RHO
    inside = np.clip(ramp, low, high)  # rounding may leave the model's levels
    return [*map(float, inside), 0.0]


def evaluations_for(steps: int) -> int:
    """Count the network evaluations of one sample: two a step, and one at the last."""
    return 2 * steps - 1


@torch.no_grad()
def sample(
    denoiser: Denoiser, count: int, *, steps: int = STEPS, seed: int = 42, chunk: int = CHUNK,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:  # fmt: skip
    """Draw images in [0, 1] by Heun's method; a sample depends on its number and the seed alone.

    Values that the model does not leave finite are NaN.
    """
    if not is_whole(count, 1) or not is_whole(steps, 2):
        raise InputError(f"Sampling takes 1 or more images and 2 or more steps, got {count!r} and {steps!r}.")
    device, call, parts = device_of(denoiser), call_of(denoiser), []

    def drawn_from(noise: Tensor) -> Tensor:
        return clamped(denoiser.decode(heun(denoiser, noise, noise_levels(denoiser, steps))))

    with evaluation_mode(denoiser):
        for start in range(0, count, chunk):
            numbers = range(start, min(count, start + chunk))
            drawn = [np.random.default_rng((seed, n)).standard_normal(denoiser.space, np.float32) for n in numbers]
            noise = torch.from_numpy(np.stack(drawn)).to(device)
            drawn_images = call(drawn_from, noise, leave_unchecked)  # with fewer at once if memory does not suffice
            parts.append(drawn_images.cpu())
            if progress:
                progress(numbers.stop, count)
    return torch.cat(parts)


def clamped(images: Tensor) -> Tensor:
    """Clamp images to [0, 1]; infinite values become NaN, as they would pass for black and white ones."""
    return torch.where(images.isfinite(), images.clamp(0, 1), math.nan)


def heun(denoiser: Denoiser, noise: Tensor, levels: list[float]) -> Tensor:
    """Follow the probability flow from pure noise along falling noise levels; x is as encoded."""
    x = levels[0] * noise
    for now, then in pairwise(levels):
        slope = (x - denoiser.clean(x, now)) / now
        ahead = x + (then - now) * slope
        if then > 0:
            slope = (slope + (ahead - denoiser.clean(ahead, then)) / then) / 2
            ahead = x + (then - now) * slope
        x = ahead
    return x
