"""The default, which needs no download: crops of the colour photographs that come with scikit-image.

Each photograph is cut in two with a strip left out between; train crops lie in one part and control crops in the
other, so no pixel of a control image was ever trained on. Files are read from the installed package directly:
scikit-image's own functions would download what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.images.decoding import decode
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source
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
    part: str  # train or control
    left: int  # where it starts in the photograph
    factor: int
    values: np.ndarray  # 3 x H x W

    def corners(self, size: int) -> np.ndarray:
        """Return the upper left corners of its crops that are not flat, a quarter of a crop apart."""
        step, area = max(1, size // 4), size * size
        total = window_sums(self.values.astype(np.int64), size, step)
        squares = window_sums(self.values.astype(np.int64) ** 2, size, step)
        variance = (area * squares - total**2).sum(axis=0) / (3 * area**2)  # whole numbers up to here: exact
        return np.argwhere(variance >= _FLAT**2) * step


@dataclass(frozen=True)
class Crop:
    """One square of a region."""

    region: Region
    top: int
    left: int
    size: int

    @property
    def id(self) -> str:
        """The photograph with left, top and side of the square in its pixels."""
        region = self.region
        x, y, side = region.left + self.left * region.factor, self.top * region.factor, self.size * region.factor
        return f"{region.photograph}/x{x}y{y}s{side}"

    @property
    def values(self) -> np.ndarray:
        return self.region.values[:, self.top : self.top + self.size, self.left : self.left + self.size]


def window_sums(values: np.ndarray, size: int, step: int) -> np.ndarray:
    """Sum over all size x size windows that start a multiple of step away, from running sums."""
    running = np.pad(values, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
    top, left = (np.arange(0, side - size + 1, step) for side in values.shape[1:])
    top = top[:, None]
    bottom, right = top + size, left + size
    outside = running[:, bottom, left] + running[:, top, right] - running[:, top, left]
    return running[:, bottom, right] - outside


def list_images(_path: Path, address: Address) -> Catalogue:
    """List all crops of the size asked for; an id holds photograph, left, top and side of the square."""
    size = address.size or 32
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"photos come in sizes from {SMALLEST} to {LARGEST}, got size={size}.")
    crops = _crops(tuple(photograph_path(name) for name in PHOTOGRAPHS), size)
    return Catalogue(
        ids=[crop.id for crop in crops],
        read=lambda positions, progress: _read([crops[position] for position in positions], size, progress),
        labels=[crop.region.photograph for crop in crops],
        parts=[crop.region.part for crop in crops],
    )


@lru_cache(maxsize=2)  # a training set and its control set are crops of the same regions
def _crops(files: tuple[Path, ...], size: int) -> list[Crop]:
    regions = [region for file in files for region in _regions(file, size)]
    return [Crop(region, top, left, size) for region in regions for top, left in region.corners(size).tolist()]


def _regions(file: Path, size: int) -> list[Region]:
    name = file.name
    values = decode(file, name)
    width = values.shape[2]
    before, after = (width - GAP) // 2, (width + GAP) // 2
    parts = ["train", "control"]
    if PHOTOGRAPHS.index(name) % 2 == 1:
        parts.reverse()
    halves = ((parts[0], 0, values[..., :before]), (parts[1], after, values[..., after:]))
    return [
        Region(file.stem, part, left, factor, _reduced(half, factor))
        for part, left, half in halves
        for factor in factors(size)
        if min(half.shape[1:]) >= size * factor
    ]


def factors(size: int) -> list[int]:
    """List whole factors to average by, each about 1.4 times the last, so that crops show details and whole objects."""
    chosen = [ceil(_SIDES[0] / size)]
    while (following := ceil(chosen[-1] * 1.4)) * size <= _SIDES[1]:
        chosen.append(following)
    return chosen


def _reduced(part: np.ndarray, factor: int) -> np.ndarray:
    """Average factor x factor blocks; a remainder at the right and the bottom is cut off."""
    rows, columns = part.shape[1] // factor, part.shape[2] // factor
    blocks = part[:, : rows * factor, : columns * factor].reshape(3, rows, factor, columns, factor)
    return to_square(blocks.transpose(0, 1, 3, 2, 4), 1)[..., 0, 0]


def photograph_path(name: str) -> Path:
    package = find_spec("skimage")
    if package is None or package.origin is None:
        raise InputError("photos are read from scikit-image, which is not installed here: pip install scikit-image.")
    file = Path(package.origin).parent / "data" / name
    if not file.is_file():
        raise InputError(f"This scikit-image comes without {name} (expected in {file.parent}); reinstall it.")
    return file


def _read(crops: list[Crop], size: int, progress: Progress) -> np.ndarray:
    result = np.empty((len(crops), 3, size, size), np.uint8)
    for row, crop in enumerate(crops):
        result[row] = crop.values
    progress(len(crops), len(crops))
    return result


SOURCE = Source(
    name="photos",
    summary="crops of photographs that come with scikit-image: no download; any size from 8 to 64",
    example="photos?count=40&size=32&seed=42",
    open=list_images,
    defaults={"count": "50", "size": "32"},
    order=10,
)
