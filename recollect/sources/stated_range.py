"""The range that values of arrays and tables have: they are scaled from it to [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.sources.address import Address

PARAMETERS = ("range", "clip")


@dataclass(frozen=True, eq=False)
class ValueRange:
    """The lowest and the highest value: of all, of each column of rows, or of each channel of signals."""

    low: np.ndarray
    high: np.ndarray
    clip: bool = False  # values beyond are brought to the nearest end

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise InputError("A range has finite ends; there are NaN or infinite values in the file that states it.")

    def to_unit(self, values: np.ndarray, name: str) -> np.ndarray:
        """Scale values to [0, 1]; refuse those beyond the range, unless they are clipped."""
        if self.low.ndim and self.low.shape != (values.shape[1], *[1] * (values.ndim - 2)):
            stated, held = ("x".join(map(str, shape)) for shape in (self.low.shape, values.shape[1:]))
            raise InputError(
                f"{name}: the file that states the range has a range for each of {stated} columns or channels, and "
                f"these values are {held}; state it with a file of the same columns, or with range=LOW,HIGH."
            )
        width = np.where(self.high > self.low, self.high - self.low, 1.0)  # a constant column is 0
        scaled = ((values - self.low) / width).astype(np.float32)
        if self.clip:
            return np.clip(scaled, 0, 1)
        beyond = (values < self.low) | (values > self.high)
        if beyond.any():
            raise InputError(
                f"{name}: {int(beyond.sum()):,} of {beyond.size:,} values lie outside the stated range, such as "
                f"{values[beyond].flat[0]:g}; state a wider range, or add clip=1 to bring them to its ends."
            )
        return np.clip(scaled, 0, 1)  # rounding must not carry an end beyond 1


def read_range(address: Address, load: Callable[[Path], np.ndarray]) -> ValueRange | None:
    """Read range=LOW,HIGH, or range=FILE, which is loaded and states the range of each column; None if left out."""
    text, clip = address.parameters.get("range"), address.parameters.get("clip", "0")
    if clip not in ("0", "1"):
        raise InputError(f"clip={clip} is unknown; it is 1, or left out.")
    if text is None:
        if clip == "1":
            raise InputError("clip=1 brings values into a range; state it with range=LOW,HIGH.")
        return None
    low, high = _two_numbers(text) or _ends_of(load(_file(text)), text)
    return ValueRange(np.asarray(low, np.float64), np.asarray(high, np.float64), clip == "1")


def _two_numbers(text: str) -> tuple[float, float] | None:
    """Read the ends of a range; None if the text is no pair of numbers."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        return None
    if not low < high:
        raise InputError(f"range={text} is two numbers, the lower first, such as -1,1.")
    return low, high


def _file(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_file():
        raise InputError(f"range={text} is neither two numbers, such as -1,1, nor a file of values.")
    return path


def _ends_of(values: np.ndarray, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of each column of rows, N x d, or of each channel of signals, N x C x L."""
    if values.ndim == 4:
        raise InputError(f"range={text} states a range for each column or channel; images take range=LOW,HIGH.")
    others = (0,) if values.ndim == 2 else (0, 2)
    low, high = values.min(axis=others, keepdims=True)[0], values.max(axis=others, keepdims=True)[0]
    return low, high
