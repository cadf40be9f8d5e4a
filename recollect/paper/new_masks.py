"""Six masks that no setting of any method was chosen on; a call with height and width returns the kept pixels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def _checker(height: int, width: int) -> np.ndarray:
    """Erase every second square of an eighth of the sides (50%)."""
    rows, columns = np.indices((height, width))
    return (rows // max(1, height // 8) + columns // max(1, width // 8)) % 2 == 0


def _right(height: int, width: int) -> np.ndarray:
    """Erase the right half."""
    return np.broadcast_to(np.arange(width) < width // 2, (height, width))


def _corner(height: int, width: int) -> np.ndarray:
    """Erase two thirds of each side from the first corner on (44%)."""
    rows, columns = np.indices((height, width))
    return (3 * rows >= 2 * height) | (3 * columns >= 2 * width)


def _disc(height: int, width: int) -> np.ndarray:
    """Erase a centred disc of a third of the height (35%)."""
    rows, columns = np.indices((height, width))
    middle, centre = (height - 1) / 2, (width - 1) / 2
    return (rows - middle) ** 2 + (columns - centre) ** 2 > (min(height, width) / 3) ** 2


def _diagonal(height: int, width: int) -> np.ndarray:
    """Erase all below the diagonal (half)."""
    rows, columns = np.indices((height, width))
    return rows * width <= columns * height


def _grid(height: int, width: int) -> np.ndarray:
    """Keep every third row and column (56%), as through a fence."""
    rows, columns = np.indices((height, width))
    return (rows % 3 == 0) | (columns % 3 == 0)


NEW_MASKS: dict[str, Callable[[int, int], np.ndarray]] = {
    "checker": _checker, "right": _right, "corner": _corner, "disc": _disc, "diagonal": _diagonal, "grid": _grid,
}  # fmt: skip
