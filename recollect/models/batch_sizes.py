"""How many images a model takes at once: batches are cut and filled up to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class BatchSizes:
    """The fewest and the most images of a batch; equal where a model was exported for one number of images."""

    fewest: int = 1
    most: int | None = None

    def apply(self, f: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        """Apply f in batches of a size that it takes."""
        if self.fewest <= len(images) and (self.most is None or len(images) <= self.most):
            return f(images)
        import torch  # options are read without it

        return torch.cat([self._filled(f, part) for part in images.split(self.most or len(images))])

    def _filled(self, f: Callable[[Tensor], Tensor], part: Tensor) -> Tensor:
        """Apply f to a part; too few images are filled up by repeating the last one."""
        missing = self.fewest - len(part)
        if missing <= 0:
            return f(part)
        import torch

        return f(torch.cat([part, part[-1:].expand(missing, *part.shape[1:])]))[: len(part)]
