"""Where the values of a set are: in memory, or on disk, from where they are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class Stored(Protocol):
    """The values of a set: 8-bit, or float32 in [0, 1]."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of images and the shape of one."""

    def read(self, rows: Any = slice(None)) -> Tensor:
        """Return the values of some images."""

    def select(self, rows: Any) -> Stored:
        """Return some images without reading them."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Values in one tensor."""

    values: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def read(self, rows: Any = slice(None)) -> Tensor:
        return self.values[rows]

    def select(self, rows: Any) -> InMemory:
        return InMemory(self.values[rows])


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Values that a reader fetches by position. The reader is what travels to another process, not the values."""

    reader: Callable[[np.ndarray], Tensor]
    positions: np.ndarray
    image_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.positions), *self.image_shape)

    def read(self, rows: Any = slice(None)) -> Tensor:
        values = self.reader(np.atleast_1d(self._of(rows)))
        if values.shape[1:] != self.image_shape and values.ndim == 4 and values.shape[1] == 1:
            values = values.expand(-1, self.image_shape[0], -1, -1)  # grey images of a set that has colour ones too
        return values.contiguous()

    def select(self, rows: Any) -> OnDisk:
        return OnDisk(self.reader, np.atleast_1d(self._of(rows)), self.image_shape)

    def _of(self, rows: Any) -> np.ndarray:
        return self.positions[rows.cpu().numpy() if isinstance(rows, torch.Tensor) else rows]
