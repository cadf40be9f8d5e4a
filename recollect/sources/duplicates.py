"""Images that occur twice: between train and control, and inside train. They inflate rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.images import Images
from recollect.sources.resize import overlaps

# One estimate can count as the approximate recovery (MSE < 5e-4) of two images exactly when these are no further
# apart than twice that error: (2 sqrt(5e-4))^2.
NEAR = 2e-3
_GRID = 8  # images are first compared by the averages of a grid of 8 x 8 cells
_ROWS, _COLUMNS = 2048, 4096  # images compared at a time; bounds memory
_PAIRS = 512  # pairs compared in full at a time
_TRIES = 16  # candidates of an image that are compared one by one, in one block of _COLUMNS
_ROUNDING = 1e-5  # of a product of factors, in float32


@dataclass(frozen=True)
class Pair:
    """Two images that are alike: the first, and the closest other that there is."""

    first: str
    second: str
    mse: float

    @property
    def exact(self) -> bool:
        """Return whether every pixel is the same."""
        return self.mse == 0


@dataclass(frozen=True)
class Duplicates:
    """`across`: control images with their twin in train; `inside`: train images with an earlier twin."""

    across: tuple[Pair, ...]
    inside: tuple[Pair, ...]
    train_count: int
    control_count: int
    near: float = NEAR

    def __bool__(self) -> bool:
        return bool(self.across or self.inside)

    def __str__(self) -> str:
        return (
            f"Of {self.control_count} control images, {_twins(self.across)} in train; "
            f"of {self.train_count} train images, {_twins(self.inside)} earlier in train (near: MSE <= {self.near:g})."
        )

    def record(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        return {
            "near": self.near,
            "train_count": self.train_count,
            "control_count": self.control_count,
            "across": [[pair.first, pair.second, pair.mse] for pair in self.across],
            "inside": [[pair.first, pair.second, pair.mse] for pair in self.inside],
        }


def _twins(pairs: tuple[Pair, ...]) -> str:
    exact = sum(pair.exact for pair in pairs)
    return f"{exact} have an exact and {len(pairs) - exact} a near duplicate"


def find_duplicates(train: Images, control: Images | None = None, *, near: float = NEAR) -> Duplicates:
    """Find images with another at most `near` (MSE) away, each with its closest: control in train, and inside train."""
    if control is not None and train.shape != control.shape:
        raise InputError(f"Train images are {train.shape} (C, H, W) and control images {control.shape}.")
    if near < 0:
        raise InputError(f"near={near} is negative; it is the largest MSE at which two images count as alike.")
    averages = _averages(train)
    inside = _closest(train, averages, train, averages, near, earlier=True)
    across = _closest(control, _averages(control), train, averages, near) if control is not None else ()
    return Duplicates(across, inside, len(train), len(control) if control is not None else 0, near)


def _averages(images: Images) -> Tensor:
    """Average over the cells of a grid, N x values; two images are never closer than their averages are.

    (Jensen: the cells are equally large and together cover every pixel equally.) They are scaled so that squared
    distances are means over the values.
    """
    _, height, width = images.shape
    rows, columns = (
        torch.from_numpy(overlaps(side, min(_GRID, side)) / side).to(torch.float32) for side in (height, width)
    )
    parts = [
        (rows @ images[start : start + _PAIRS].pixels.cpu() @ columns.T).flatten(1)
        for start in range(0, len(images), _PAIRS)
    ]
    averages = torch.cat(parts)
    return averages / averages.shape[1] ** 0.5


def _closest(
    images: Images, averages: Tensor, others: Images, other_averages: Tensor, near: float, *, earlier: bool = False
) -> tuple[Pair, ...]:
    """Find the closest other of each image within near; `earlier` compares each with those before it in the set."""
    best = torch.full((len(images),), torch.inf, dtype=torch.float64)
    twin = torch.full((len(images),), -1)
    left_factor, right_factor = _factors(averages, other_averages)
    for top in range(0, len(images), _ROWS):
        for left in range(0, min(top + _ROWS, len(others)) if earlier else len(others), _COLUMNS):
            distance = left_factor[top : top + _ROWS] @ right_factor[left : left + _COLUMNS].T
            if earlier and left + _COLUMNS > top:
                before = torch.arange(left, left + distance.shape[1]) < torch.arange(top, top + len(distance))[:, None]
                distance.masked_fill_(~before, torch.inf)
            _compare(images, others, distance, top, left, near, best, twin)
    alike = (best <= near).nonzero().flatten().tolist()
    return tuple(Pair(images.ids[i], others.ids[int(twin[i])], float(best[i])) for i in alike)


def _factors(rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return two matrices whose product holds the squared distances of all pairs: |a|^2 + |b|^2 - 2 a.b in one pass."""
    left = torch.cat([-2 * rows, rows.square().sum(1, keepdim=True), torch.ones(len(rows), 1)], dim=1)
    right = torch.cat([columns, torch.ones(len(columns), 1), columns.square().sum(1, keepdim=True)], dim=1)
    return left, right


def _compare(
    images: Images, others: Images, distance: Tensor, top: int, left: int, near: float, best: Tensor, twin: Tensor
) -> None:
    """Compare in full what is near by averages; where too many averages are near, what is near in full."""
    limit = near + _ROUNDING
    rows = (distance.amin(1) <= limit).nonzero().flatten()
    if not len(rows):
        return
    rows = rows[_try(images, others, distance[rows], rows + top, left, limit, best, twin)]
    for few in rows.split(_PAIRS) if len(rows) else ():
        full = _distances(images, few + top, others, left, distance.shape[1])
        full.masked_fill_(distance[few] > limit, torch.inf)
        _try(images, others, full, few + top, left, limit, best, twin)


def _try(
    images: Images,
    others: Images,
    distance: Tensor,
    rows: Tensor,
    left: int,
    limit: float,
    best: Tensor,
    twin: Tensor,
) -> Tensor:
    """Compare with the nearest _TRIES, in order, while an image could gain by it; return which could gain by more."""

    def hopeful(bound: Tensor) -> Tensor:
        return (bound <= limit) & (bound - _ROUNDING < best[rows]) & (best[rows] > 0)

    bounds, columns = distance.topk(min(_TRIES, distance.shape[1]), largest=False)
    for bound, column in zip(bounds.T, columns.T, strict=True):
        gaining = hopeful(bound)
        if not bool(gaining.any()):
            break
        first, second = rows[gaining], column[gaining] + left
        mse = _mse(images, first, others, second)
        closer = mse < best[first]
        best[first[closer]] = mse[closer]
        twin[first[closer]] = second[closer]
    return hopeful(bounds[:, -1]) & (distance.shape[1] > _TRIES)


def _distances(images: Images, rows: Tensor, others: Images, left: int, count: int) -> Tensor:
    """Return the MSE of each of the rows to `count` others from `left` on, but for the rounding of float32."""
    mine = _scaled(images[rows.numpy()])
    parts = []
    for start in range(left, left + count, _PAIRS):
        one, other = _factors(mine, _scaled(others[start : min(start + _PAIRS, left + count)]))
        parts.append(one @ other.T)
    return torch.cat(parts, dim=1)


def _scaled(images: Images) -> Tensor:
    """Return all values, N x values, scaled so that squared distances are means over the values."""
    values = images.pixels.cpu().flatten(1)
    return values / values.shape[1] ** 0.5


def _mse(images: Images, first: Tensor, others: Images, second: Tensor) -> Tensor:
    parts = []
    for start in range(0, len(first), _PAIRS):
        here = slice(start, start + _PAIRS)
        difference = images[first[here].numpy()].pixels.cpu() - others[second[here].numpy()].pixels.cpu()
        parts.append(difference.square().flatten(1).mean(1, dtype=torch.float64))
    return torch.cat(parts)
