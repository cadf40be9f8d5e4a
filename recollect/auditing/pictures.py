"""Pictures for the report: a sample of the images as 8-bit arrays."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from recollect.auditing.value_plots import draw_bands, draw_values
from recollect.degradation import Erasure, Observation
from recollect.images import Images
from recollect.palette import ERROR_LEVELS
from recollect.recovery import Recovery

SAMPLE = 48  # images of each set in the gallery, at the most
GALLERY_BYTES = 12e6  # fewer when their pictures would be more than this ...
PLOT_BYTES = 1000  # of a picture of a signal or a row, packed
CELLS = 60  # ... in an audit of two sets, six masks and five methods


def sampled(images: Images, *, keep: bool = True) -> np.ndarray:
    """Choose positions evenly spaced over a set, fewer when images are large: the same for every cell.

    Unless `keep`, none is chosen.
    """
    if not keep:
        return np.empty(0, int)
    size = math.prod(images.shape) if images.kind == "images" else PLOT_BYTES
    affordable = int(GALLERY_BYTES / (CELLS * 2.5 * size))
    return images.spread(max(6, min(SAMPLE, affordable)))


def cell_pictures(images: Images, seen: Observation, recovery: Recovery, shown: np.ndarray) -> dict[str, np.ndarray]:
    """Draw what the gallery shows of one cell, for the images at the positions `shown`."""
    original, estimate = images[shown].pixels, recovery.estimate[shown]
    error = log_levels(mean_over_channels((estimate - original).abs()))
    pictures = {"degraded": as_colour(seen.y[shown]), "estimate": as_colour(estimate), "log_error": as_grey(error)}
    if isinstance(recovery.degradation, Erasure):
        pictures["mask"] = as_grey(mean_over_channels(recovery.degradation.keep.expand_as(recovery.estimate)[shown]))
    return pictures


def set_pictures(images: Images, shown: np.ndarray) -> dict[str, np.ndarray]:
    """Draw the originals at the positions `shown`."""
    return {"original": as_colour(images[shown].pixels), "index": shown}


def as_colour(images: Tensor) -> np.ndarray:
    """Convert to 8-bit H x W x C, clipped to [0, 1] and never rescaled; values that are not finite are black.

    Signals and rows are drawn.
    """
    if images.ndim != 4:
        return draw_values(images)
    values = images.detach().float().cpu().nan_to_num(0.0).clamp(0, 1)
    return (values * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def mean_over_channels(values: Tensor) -> Tensor:
    """Return the mean over the channels of images, N x H x W; values of signals and rows are drawn as bands."""
    return values.float().mean(1) if values.ndim == 4 else draw_bands(values)


def log_levels(errors: Tensor) -> Tensor:
    """Map errors to [0, 1] on a logarithmic scale: one that the eye cannot see still shows where it is."""
    smallest, largest = ERROR_LEVELS
    return (255 * errors / smallest).log10() / math.log10(largest / smallest)


def as_grey(values: Tensor) -> np.ndarray:
    """Convert to 8-bit, clipped to [0, 1]; values that are not finite are white."""
    return (values.detach().float().cpu().nan_to_num(1.0).clamp(0, 1) * 255).round().to(torch.uint8).numpy()
