"""Two baselines of the field for telling training images of a diffusion model from unseen ones: an error per image."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from recollect.devices.model_call import call_of, leave_unchecked
from recollect.devices.precision import device_of, evaluation_mode
from recollect.diffusion.denoiser import Denoiser
from recollect.images import Images
from recollect.scoring import mse
from recollect.seeding import own_draws

CHUNK = 256
NEARLY_CLEAN = 0.01  # the noise level that a clean image is taken to have when its inversion begins
RATIO = 1.1  # of the two noise levels between which SecMI moves an image


def denoising_loss(
    denoiser: Denoiser, images: Images, sigma: float, *, draws: int = 1, seed: int = 42, chunk: int = CHUNK
) -> Tensor:
    """Compute per image the mean error (MSE) of denoising it, as encoded; the noise belongs to the image."""
    denoiser.check_level(sigma)

    def error(x: Tensor) -> Tensor:
        errors, clean = [], denoiser.encode(x)
        for number in range(draws):
            drawn = [rng.standard_normal(clean.shape[1:], np.float32) for rng in own_draws(x, seed + number)]
            noisy = clean + sigma * torch.from_numpy(np.stack(drawn)).to(x)
            errors.append(_error(denoiser.clean(noisy, sigma), clean))
        return torch.stack(errors).mean(0)

    return _in_chunks(denoiser, images, error, chunk)


def secmi(
    denoiser: Denoiser, images: Images, sigma: float, *, steps: int = 10, ratio: float = RATIO, chunk: int = CHUNK
) -> Tensor:
    """Compute per image the t-error of SecMI (Duan et al. 2023).

    The image is inverted to the noise level sigma by `steps` deterministic steps. One more step up, to sigma times
    `ratio`, and one back down change a training image less. That takes steps + 2 network evaluations.
    """
    lowest = max(NEARLY_CLEAN, denoiser.preconditioning.lowest)
    for level in (sigma, sigma * ratio):
        denoiser.check_level(level)
    levels = np.geomspace(min(lowest, sigma), sigma, steps + 1)

    def error(x: Tensor) -> Tensor:
        inverted = denoiser.encode(x)
        for now, then in pairwise(levels):
            inverted = _move(denoiser, inverted, float(now), float(then))
        above = _move(denoiser, inverted, sigma, sigma * ratio)
        return _error(_move(denoiser, above, sigma * ratio, sigma), inverted)

    return _in_chunks(denoiser, images, error, chunk)


def _move(denoiser: Denoiser, x: Tensor, now: float, then: float) -> Tensor:
    """Move x from one noise level to another along the deterministic flow (DDIM's step)."""
    return x + (then - now) / now * (x - denoiser.clean(x, now))


def _error(x: Tensor, expected: Tensor) -> Tensor:
    """Compute the MSE as of images in [0, 1], whose values lie half as far apart as in [-1, 1]."""
    return mse(x, expected) / 4


@torch.no_grad()
def _in_chunks(denoiser: Denoiser, images: Images, error: Callable[[Tensor], Tensor], chunk: int) -> Tensor:
    denoiser.check_shape(*images.image_shape)
    device, call = device_of(denoiser), call_of(denoiser)  # which takes fewer at once if memory does not suffice
    with evaluation_mode(denoiser):
        parts = (images[start : start + chunk].pixels.to(device) for start in range(0, len(images), chunk))
        return torch.cat([call(error, part, leave_unchecked) for part in parts])
