"""The images of a set that are nearest to others, by matrix products in bounded memory."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional

from recollect.images import Images, as_float32

ROWS, COLUMNS = 1024, 2048  # images of the two sides that are compared at a time; bounds memory
ALL_COMPARED = 4096  # images of a set that are all compared by their pixels; in larger ones averages choose first
GRID = 8  # by which averages are taken: 8 x 8 cells of an image in grey
BLOCK = 512  # images of which the one with the nearest averages is a candidate

_averages_of: WeakKeyDictionary[Images, Tensor] = WeakKeyDictionary()


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


def candidates_by_averages(
    queries: Tensor, images: Images, count: int, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Choose `count` images for each query by the averages of a coarse grid: positions, and MSEs of the averages.

    An image is a candidate if no other of its block has nearer averages, and of these the nearest are taken. The work
    is 64 products a pair, where pixels take thousands.
    """
    averages = _averages_once(images, device)
    positions, errors = [], []
    for rows in queries.split(ROWS):
        own = grid_averages(rows.nan_to_num().to(device, torch.float32))
        minima = [_nearest_of_block(own, averages, left) for left in range(0, len(averages), COLUMNS)]
        distance, index = (torch.cat(parts, 1) for parts in zip(*minima, strict=True))
        nearest = distance.topk(min(count, distance.shape[1]), largest=False)
        lengths = own.square().sum(1, keepdim=True)
        errors.append(((nearest.values + lengths).clamp(min=0) / own.shape[1]).cpu())
        positions.append(index.gather(1, nearest.indices).cpu())
    return torch.cat(positions), torch.cat(errors)


def grid_averages(pixels: Tensor) -> Tensor:
    """Average over channels and the cells of a grid, N x values, centred on grey."""
    if pixels.ndim == 4:
        height, width = (min(GRID, side) for side in pixels.shape[2:])
        means = functional.adaptive_avg_pool2d(pixels.mean(1, keepdim=True), (height, width))
    else:
        means = functional.adaptive_avg_pool1d(pixels.flatten(1)[:, None], min(GRID**2, pixels[0].numel()))
    return means.flatten(1) - 0.5


def _averages_once(images: Images, device: torch.device | str) -> Tensor:
    """Compute the averages of a set once, piece by piece; they are kept as long as the set."""
    if images not in _averages_of:
        starts = range(0, len(images), COLUMNS)
        parts = (as_float32(images.stored_at(slice(start, start + COLUMNS)).to(device)) for start in starts)
        _averages_of[images] = torch.cat([grid_averages(part) for part in parts])
    return _averages_of[images].to(device)


def _nearest_of_block(own: Tensor, averages: Tensor, left: int) -> tuple[Tensor, Tensor]:
    """Find the nearest image of each block, from `left` on, but for the length of the query itself."""
    columns = averages[left : left + COLUMNS]
    distances = torch.addmm(columns.square().sum(1), own, columns.T, alpha=-2)
    distances = functional.pad(distances, (0, -len(columns) % BLOCK), value=math.inf)
    nearest = distances.view(len(own), -1, BLOCK).min(2)
    blocks = torch.arange(nearest.indices.shape[1], device=own.device) * BLOCK
    return nearest.values, nearest.indices + blocks + left


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
