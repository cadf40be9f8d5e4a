"""Which samples are copies of training images: by pixels, and by the patch rule of Carlini et al. 2023."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from recollect.errors import InputError
from recollect.images import Images
from recollect.nearest import nearest_candidates
from recollect.scoring import mse

CANDIDATES = 8  # training images nearest by pixels that are compared exactly
TILES = 4  # a side: 16 tiles, as in the paper
CHUNK = 512  # samples compared at a time


@dataclass(frozen=True, eq=False)
class Copies:
    """For each sample the position of a training image and the distance to it, under two rules."""

    by_pixels: np.ndarray
    mse: np.ndarray
    by_patches: np.ndarray
    patch_distance: np.ndarray  # the largest root-mean-square difference of a tile

    def distinct(self, threshold: float) -> np.ndarray:
        """List the training images of which a sample is a copy by its MSE."""
        return np.unique(self.by_pixels[self.mse < threshold])

    def distinct_by_patches(self, threshold: float) -> np.ndarray:
        """List the training images of which a sample is a copy by the patch rule."""
        return np.unique(self.by_patches[self.patch_distance < threshold])

    def smallest(self, threshold: float) -> dict[int, float]:
        """Return the smallest MSE of a sample for each training image of which one is a copy."""
        smallest: dict[int, float] = {}
        for position, error in zip(self.by_pixels.tolist(), self.mse.tolist(), strict=True):
            if error < threshold:
                smallest[position] = min(error, smallest.get(position, error))
        return smallest

    def captures(self, threshold: float, count: int) -> np.ndarray:
        """Count for each of `count` training images how many samples are copies of it."""
        return np.bincount(self.by_pixels[self.mse < threshold], minlength=count)


def find_copies(samples: Tensor, images: Images) -> Copies:
    """Find the nearest training image of each sample, both in [0, 1]."""
    if samples.shape[1:] != images.shape:
        given, own = ("x".join(map(str, shape)) for shape in (samples.shape[1:], images.shape))
        raise InputError(f"The samples are {given} and the training images {own}; both must have one size.")
    samples = samples.float().cpu()
    candidates = nearest_candidates(samples, images, CANDIDATES)
    parts = [
        _compared(*part, images.pixels) for part in zip(samples.split(CHUNK), candidates.split(CHUNK), strict=True)
    ]
    return Copies(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _compared(samples: Tensor, candidates: Tensor, pixels: Tensor) -> tuple[np.ndarray, ...]:
    """Compare the candidates of each sample exactly, and keep the nearest under each rule."""
    errors = torch.stack([mse(samples, pixels[column]) for column in candidates.T], 1)
    patches = torch.stack([_patch_distance(samples, pixels[column]) for column in candidates.T], 1)
    rows = []
    for distances in (errors, patches):
        best = distances.min(1)
        rows += [candidates.gather(1, best.indices[:, None])[:, 0].numpy(), best.values.numpy()]
    return tuple(rows)


def _patch_distance(a: Tensor, b: Tensor) -> Tensor:
    """Compute the largest root-mean-square difference over tiles: a copy of the background alone is no copy."""
    squares = (a.double() - b.double()).square().mean(1, keepdim=True)
    return functional.adaptive_avg_pool2d(squares, TILES).flatten(1).amax(1).sqrt()
