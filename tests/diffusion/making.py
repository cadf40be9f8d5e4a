"""Denoisers small enough to be trained while one waits."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect import Images
from recollect.diffusion import Denoiser, DenoiserRecipe, train_denoiser

TINY = DenoiserRecipe(settings={"widths": (16, 16)}, batch=4, warm_up=2)


def pictures(count: int = 12, size: int = 8, seed: int = 0, channels: int = 3) -> Images:
    """8-bit images, all unlike each other."""
    values = torch.randint(0, 256, (count, channels, size, size), generator=torch.Generator().manual_seed(seed))
    return Images.from_uint8(values.byte(), name=f"pictures-{seed}")


def train_steps(images: Images, out: Path, steps: int = 2, **more: Any) -> Denoiser:
    """Train a tiny denoiser on a CPU for so many steps in all."""
    options: dict[str, Any] = {"recipe": TINY, "device": "cpu", "samples": 0}
    return train_denoiser(images, out, max_steps=steps, **options | more)


def posterior_mean(stored: Tensor) -> Any:
    """The exact denoiser of a set of images in [-1, 1]: their mean, weighted by how likely each one is."""

    def denoise(x: Tensor, sigma: Tensor) -> Tensor:
        distances = torch.cdist(x.flatten(1), stored.to(x).flatten(1)).square()
        return (torch.softmax(-distances / (2 * sigma**2), 1) @ stored.to(x).flatten(1)).view_as(x)

    return denoise


def memory_of(images: Images) -> Denoiser:
    """A denoiser that knows these images and no others."""
    return Denoiser.of(posterior_mean(2 * images.pixels - 1), images.image_shape, "memory")


def that_fits(denoiser: Denoiser, most: int) -> Denoiser:
    """The same denoiser with memory for so many images at once."""

    def f(x: Tensor, sigma: Tensor) -> Tensor:
        if len(x) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        result: Tensor = denoiser.network(x, sigma)
        return result

    return Denoiser.of(f, denoiser.shape)
