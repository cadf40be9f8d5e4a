"""The images of a set that are nearest to others, by matrix products in bounded memory."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from recollect.images import Images

ROWS, COLUMNS = 1024, 2048  # images of the two sides that are compared at a time; bounds memory


def nearest_candidates(queries: Tensor, images: Images, count: int = 1, device: torch.device | str = "cpu") -> Tensor:
    """Find the `count` images nearest to each query, nearest first: their positions, N x count.

    Products of nearly equal images lose digits: compare the candidates once more where the distance itself matters.
    """
    count = min(count, len(images))
    best = torch.full((len(queries), count), math.inf, device=device)
    index = torch.zeros(len(queries), count, dtype=torch.long, device=device)
    for left in range(0, len(images), COLUMNS):
        columns = _centred(images[left : left + COLUMNS].pixels, device)
        for top in range(0, len(queries), ROWS):
            rows = _centred(queries[top : top + ROWS].nan_to_num(), device)
            _keep_nearer(best[top : top + ROWS], index[top : top + ROWS], rows, columns, left)
    return index.cpu()


def _keep_nearer(best: Tensor, index: Tensor, rows: Tensor, columns: Tensor, left: int) -> None:
    """Update the nearest of each row in place; the rows' own lengths do not change which ones are nearest."""
    distances = columns.square().sum(1) - 2 * rows @ columns.T
    distances, positions = distances.topk(min(best.shape[1], len(columns)), largest=False)
    joined, order = torch.cat([best, distances], 1).topk(best.shape[1], largest=False)
    index.copy_(torch.cat([index, positions + left], 1).gather(1, order))
    best.copy_(joined)


def _centred(pixels: Tensor, device: torch.device | str) -> Tensor:
    """Flatten images, centred on grey: shorter vectors lose fewer digits in a matrix product."""
    return pixels.to(device, torch.float32).flatten(1) - 0.5
