"""Pictures as sprite sheets: thousands of small images in a few dozen PNG files, written into the page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from recollect.errors import InputError

_HEAT = ["000004", "3b0f70", "8c2981", "de4968", "fe9f6d", "fcfdbf"]  # dark to light, so that it also reads in grey


@dataclass(frozen=True)
class Sheet:
    """Equally sized tiles in reading order, as one PNG."""

    columns: int
    png: bytes

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")


@dataclass
class Sheets:
    """All sheets of a page; a picture is named by the number of its sheet and its place there."""

    all: list[Sheet] = field(default_factory=list)

    def add(self, sheet: Sheet) -> int:
        self.all.append(sheet)
        return len(self.all) - 1


Maker = Callable[[np.ndarray], Sheet]


def pictures(tiles: np.ndarray) -> Sheet:
    """Grey or colour pictures, value by value as they are."""
    grid, columns = _grid(tiles)
    return Sheet(columns, _png(Image.fromarray(grid[..., 0] if grid.shape[-1] == 1 else grid)))


def masks(tiles: np.ndarray) -> Sheet:
    """Masks; one bit a pixel where they are black and white."""
    grid, columns = _grid(tiles)
    image = Image.fromarray(grid[..., 0])
    two_levels = bool(np.isin(grid, (0, 255)).all())
    return Sheet(columns, _png(image.convert("1", dither=Image.Dither.NONE) if two_levels else image))


def errors(tiles: np.ndarray) -> Sheet:
    """Error maps in one palette: black is no error, the lightest is 0.25 or more."""
    grid, columns = _grid(tiles)
    image = Image.fromarray(grid[..., 0]).convert("P")
    image.putpalette(_palette())
    return Sheet(columns, _png(image))


def _grid(tiles: np.ndarray) -> tuple[np.ndarray, int]:
    if tiles.dtype != np.uint8 or tiles.ndim not in (3, 4) or not len(tiles):
        raise InputError(f"Pictures are 8-bit, N x H x W (x C); got {tiles.dtype} of shape {tiles.shape}.")
    tiles = tiles[..., None] if tiles.ndim == 3 else tiles
    count, height, width, channels = tiles.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    padded = np.zeros((rows * columns, height, width, channels), np.uint8)
    padded[:count] = tiles
    grid = padded.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return np.ascontiguousarray(grid.reshape(rows * height, columns * width, channels)), columns


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=6)
    return file.getvalue()


def _palette() -> list[int]:
    anchors = np.array([[int(c[i : i + 2], 16) for i in (0, 2, 4)] for c in _HEAT])
    at = np.linspace(0, len(_HEAT) - 1, 256)
    channels = [np.interp(at, range(len(_HEAT)), anchors[:, c]) for c in range(3)]
    return np.stack(channels, 1).round().astype(int).ravel().tolist()
