"""Degrade images: y = H x + noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from recollect.degradation.base import Degradation
from recollect.errors import InputError, check_seed, is_number
from recollect.images import Images
from recollect.seeding import own_draws


@dataclass(frozen=True, eq=False)
class Observation:
    """Damaged images, and the truth about how they were damaged: blind methods are given `y` alone.

    Args:
        y: The damaged images.
        truth: The degradation.
        noise_std: Standard deviation of the noise that was added.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> seen.y.shape, str(seen.truth)
        (torch.Size([2, 3, 8, 8]), '50.0% erased')
    """

    y: Tensor
    truth: Degradation
    noise_std: float = 0.0


def observe(images: Images, truth: Degradation, *, noise_std: float = 0.0, seed: int = 42) -> Observation:
    """Degrade each image; each has its own draw of noise, whichever images are beside it.

    Args:
        images: Images, or any form that `Images.of` takes.
        truth: The degradation.
        noise_std: Standard deviation of the noise that is added.
        seed: Seed of the noise.

    Returns:
        The damaged images with the truth.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> float(seen.y[:, :, 4:].abs().sum())
        0.0
    """
    if not is_number(noise_std) or not 0 <= noise_std < math.inf:
        raise InputError(f"The noise's standard deviation must be zero or more, got {noise_std!r}.")
    check_seed(seed)
    if not isinstance(truth, Degradation):
        raise InputError(f"A degradation is made by recollect.mask(what, images.shape); got {type(truth).__name__}.")
    images = Images.of(images)
    pixels = images.pixels
    y = truth.expand(pixels).apply(pixels)
    if noise_std:
        noise = np.empty(pixels.shape, np.float32)
        for own, rng in zip(noise, own_draws(pixels, seed), strict=True):
            rng.standard_normal(dtype=np.float32, out=own)
        y = torch.from_numpy(noise).mul_(noise_std).add_(y)  # in place: large sets are held once less
    return Observation(y, truth, noise_std)
