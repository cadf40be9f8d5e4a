"""Draw images that are like a source and equal to none of its images: quarters of four different images."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from recollect.duplicates import find_duplicates
from recollect.errors import InputError
from recollect.images import Images

FEWEST = 8  # images of a source: four quarters of eight images make 1680 collages
TRIES = 20  # to draw a collage that is unlike all others


def draw_collages(like: Images, count: int, generator: np.random.Generator) -> Images:
    """Draw collages; those near to an image of the source, or to an earlier collage, are drawn again."""
    _check(like)
    values = torch.stack([_collage(like, generator) for _ in range(count)])
    for _ in range(TRIES):
        images = Images.from_uint8(values)
        duplicates = find_duplicates(like, images)
        alike = [*duplicates.across, *find_duplicates(images).inside]
        if not alike:
            return images
        for position in sorted({int(pair.first) for pair in alike}):
            values[position] = _collage(like, generator)
    raise InputError(f"The images of {like.name} are too much alike to make {count} different canaries; give others.")


def _check(like: Images) -> None:
    if len(like) < FEWEST:
        raise InputError(f"Canaries are made of at least {FEWEST} images; {like.name} has {len(like)}.")
    if min(like.image_shape[1:]) < 2:
        raise InputError(f"Canaries are made of quarters of images, and those of {like.name} are one pixel thin.")


def _collage(like: Images, generator: np.random.Generator) -> Tensor:
    """Cut four images at one point near the centre, and take a quarter of each."""
    _, height, width = like.image_shape
    row, column = (int(generator.integers(max(1, size // 4), size - size // 4)) for size in (height, width))
    four = like[generator.choice(len(like), 4, replace=False).tolist()].pixels
    result = (four[0] * 255).round().byte()
    others = (four[1:] * 255).round().byte()
    result[:, :row, column:] = others[0, :, :row, column:]
    result[:, row:, :column] = others[1, :, row:, :column]
    result[:, row:, column:] = others[2, :, row:, column:]
    return result
