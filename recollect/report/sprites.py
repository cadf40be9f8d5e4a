"""Sprite sheets: thousands of small pictures in a few dozen PNG files, written into the page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageColor

from recollect.errors import InputError
from recollect.palette import HEAT


@dataclass(frozen=True)
class Sheet:
    """Tiles of equal size in reading order, as one PNG."""

    columns: int
    png: bytes

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")


@dataclass
class Sheets:
    """All sheets of a page; a picture is found by the number of its sheet and its position in it."""

    all: list[Sheet] = field(default_factory=list)

    def add(self, sheet: Sheet) -> int:
        self.all.append(sheet)
        return len(self.all) - 1


Draw = Callable[[np.ndarray], Sheet]


def pictures(tiles: np.ndarray) -> Sheet:
    """Draw grey or colour pictures, value by value as they are."""
    grid, columns = _grid(tiles)
    if grid.shape[-1] == 1:
        grid = grid[..., 0]
    return Sheet(columns, _png(Image.fromarray(grid)))


def masks(tiles: np.ndarray) -> Sheet:
    """Draw masks, with one bit a pixel if they are black and white."""
    grid, columns = _grid(tiles)
    image = Image.fromarray(grid[..., 0])
    if np.isin(grid, (0, 255)).all():
        image = image.convert("1", dither=Image.Dither.NONE)
    return Sheet(columns, _png(image))


def errors(tiles: np.ndarray) -> Sheet:
    """Draw error maps in the colours of HEAT: darker is smaller, on the scale that the values have."""
    grid, columns = _grid(tiles)
    image = Image.fromarray(grid[..., 0]).convert("P")
    image.putpalette(_heat_palette())
    return Sheet(columns, _png(image))


def _grid(tiles: np.ndarray) -> tuple[np.ndarray, int]:
    if tiles.dtype != np.uint8 or tiles.ndim not in (3, 4) or not len(tiles):
        raise InputError(f"Pictures are 8-bit, N x H x W (x C); got {tiles.dtype} of shape {tiles.shape}.")
    if tiles.ndim == 3:
        tiles = tiles[..., None]
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


def _heat_palette() -> list[int]:
    """Interpolate 256 colours, red, green and blue in turn."""
    anchors = np.array([ImageColor.getrgb(colour) for colour in HEAT])
    positions = np.linspace(0, len(HEAT) - 1, 256)
    channels = [np.interp(positions, range(len(HEAT)), channel) for channel in anchors.T]
    return np.stack(channels, 1).round().astype(int).ravel().tolist()
