"""Between the size of the images and the larger size that a prior knows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Resizing:
    """`down` averages areas; `up` is its right inverse: down(up(x)) is x, and for whole factors up repeats pixels."""

    def __init__(self, small: Sequence[int], large: Sequence[int], like: Tensor) -> None:
        self._same = tuple(small) == tuple(large)
        if not self._same:
            means = [area_means(s, l) for s, l in zip(small, large, strict=True)]
            self._down = [m.to(like) for m in means]
            self._up = [torch.linalg.pinv(m).to(like) for m in means]

    def down(self, x: Tensor) -> Tensor:
        return x if self._same else self._down[0] @ x @ self._down[1].T

    def up(self, x: Tensor) -> Tensor:
        return x if self._same else self._up[0] @ x @ self._up[1].T


def area_means(small: int, large: int) -> Tensor:
    """Make the small x large matrix whose row i averages the i-th of `small` equal stretches of `large` pixels."""
    edges = torch.arange(small + 1, dtype=torch.float64) * (large / small)
    pixels = torch.arange(large, dtype=torch.float64)
    overlap = torch.minimum(edges[1:, None], pixels + 1) - torch.maximum(edges[:-1, None], pixels)
    return overlap.clamp(min=0) * (small / large)
