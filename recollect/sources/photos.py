"""The default, which needs no download: crops of the colour photographs that scikit-image brings along.

Each photograph is cut in two with a strip left out between; train crops lie in one part and control crops in the
other, so no pixel of a control image was ever trained on. Files are read from the installed package directly:
scikit-image's own functions would download what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.sources.address import Request
from recollect.sources.catalogue import Catalogue, Progress, Source
from recollect.sources.decoding import decode
from recollect.sources.resize import to_square

# Left out: the motorcycle's right view, which shows the same scene, and the retina, whose crops are all but alike.
PHOTOGRAPHS = (
    "astronaut.png",
    "chelsea.png",
    "coffee.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "motorcycle_left.png",
    "rocket.jpg",
)
SMALLEST, LARGEST = 8, 64
GAP = 16  # pixels left out between the two parts: JPEG files mix blocks of 16 x 16
_SIDES = (48, 192)  # crops cover squares between these sides of the photograph
_FLAT = 20.0  # crops whose values spread less than this (standard deviation of a channel, of 255) are left out


@dataclass(frozen=True)
class Region:
    """One part of one photograph, averaged down by a whole factor."""

    photograph: str
    side: str  # train or control
    left: int  # where it starts in the photograph
    factor: int
    values: np.ndarray  # 3 x H x W

    def corners(self, size: int) -> np.ndarray:
        """Upper left corners of the crops in it that are not flat, a quarter of a crop apart."""
        step, area = max(1, size // 4), size * size
        total = _window_sums(self.values.astype(np.int64), size, step)
        squares = _window_sums(self.values.astype(np.int64) ** 2, size, step)
        variance = (area * squares - total**2).sum(axis=0) / (3 * area**2)  # whole numbers up to here: exact
        return np.argwhere(variance >= _FLAT**2) * step

    def square(self, top: int, left: int, size: int) -> tuple[int, int, int]:
        """Left, top and side of a crop in pixels of the photograph."""
        return self.left + left * self.factor, top * self.factor, size * self.factor


def _window_sums(values: np.ndarray, size: int, step: int) -> np.ndarray:
    """Sums over all size x size windows that start a multiple of step away, from running sums."""
    running = np.pad(values, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
    rows, columns = np.arange(0, values.shape[1] - size + 1, step), np.arange(0, values.shape[2] - size + 1, step)
    low, high = np.ix_(rows, columns), np.ix_(rows + size, columns + size)
    corners = (high, (high[0], low[1]), (low[0], high[1]), low)
    a, b, c, d = (running[:, row, column] for row, column in corners)
    return a - b - c + d


def open_(_path: Path, request: Request) -> Catalogue:
    """All crops of the size asked for; ids tell photograph, left, top and side of the square they cover."""
    size = request.size or 32
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"photos come in sizes from {SMALLEST} to {LARGEST}, got size={size}.")
    regions = [region for name in PHOTOGRAPHS for region in _regions(name, size)]
    crops = [(number, top, left) for number, r in enumerate(regions) for top, left in r.corners(size).tolist()]
    return Catalogue(
        ids=[_id(regions[number], top, left, size) for number, top, left in crops],
        read=lambda positions, progress: _read(regions, [crops[p] for p in positions], size, progress),
        labels=[regions[number].photograph for number, _, _ in crops],
        sides=[regions[number].side for number, _, _ in crops],
    )


def _id(region: Region, top: int, left: int, size: int) -> str:
    x, y, side = region.square(top, left, size)
    return f"{region.photograph}/x{x}y{y}s{side}"


def _regions(name: str, size: int) -> list[Region]:
    values = _photograph(name)
    width = values.shape[2]
    before, after = (width - GAP) // 2, (width + GAP) // 2
    sides = ("train", "control") if PHOTOGRAPHS.index(name) % 2 == 0 else ("control", "train")
    parts = ((sides[0], 0, values[..., :before]), (sides[1], after, values[..., after:]))
    return [
        Region(Path(name).stem, side, left, factor, _reduced(part, factor))
        for side, left, part in parts
        for factor in factors(size)
        if min(part.shape[1:]) >= size * factor
    ]


def factors(size: int) -> list[int]:
    """Whole factors to average by, each about 1.4 times the last, so that crops show details and whole things."""
    found = [ceil(_SIDES[0] / size)]
    while (following := ceil(found[-1] * 1.4)) * size <= _SIDES[1]:
        found.append(following)
    return found


def _reduced(part: np.ndarray, factor: int) -> np.ndarray:
    """Averages of factor x factor blocks; what is left over at the right and the bottom is cut off."""
    rows, columns = part.shape[1] // factor, part.shape[2] // factor
    blocks = part[:, : rows * factor, : columns * factor].reshape(3, rows, factor, columns, factor)
    return to_square(blocks.transpose(0, 1, 3, 2, 4), 1)[..., 0, 0]


def _photograph(name: str) -> np.ndarray:
    package = find_spec("skimage")
    if package is None or package.origin is None:
        raise InputError("photos are read from scikit-image, which is not installed here: pip install scikit-image.")
    file = Path(package.origin).parent / "data" / name
    if not file.is_file():
        raise InputError(f"This scikit-image does not bring {name} along (looked in {file.parent}); reinstall it.")
    return decode(file, name)


def _read(regions: list[Region], crops: list[tuple[int, int, int]], size: int, progress: Progress) -> Tensor:
    result = np.empty((len(crops), 3, size, size), np.uint8)
    for place, (number, top, left) in enumerate(crops):
        result[place] = regions[number].values[:, top : top + size, left : left + size]
    progress(len(crops), len(crops))
    return torch.from_numpy(result)


SOURCE = Source(
    name="photos",
    about="crops of photographs that come with scikit-image: no download; any size from 8 to 64",
    example="photos?count=40&size=32&seed=42",
    open=open_,
    defaults={"count": "50", "size": "32"},
)
