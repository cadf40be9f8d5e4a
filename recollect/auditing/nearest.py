"""Which training image did a recovery end on? The nearest one and its error, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from recollect.images import Images
from recollect.nearest import ROWS, nearest_candidates
from recollect.scoring import mse

Outcome = Literal["recovered", "another training image", "neither"]


@dataclass(frozen=True)
class Nearest:
    """For each estimate the id, position and error of the nearest training image; None if it is not finite."""

    ids: list[str | None]
    mse: list[float | None]
    index: list[int | None] = field(default_factory=list)

    def add(self, name: str | None, error: float | None, position: int | None) -> None:
        self.ids.append(name)
        self.mse.append(error)
        self.index.append(position)


def find_nearest(estimates: Tensor, training: Images, device: torch.device | str = "cpu") -> Nearest:
    """Compare every estimate with every training image by matrix products, and the nearest one once more exactly."""
    finite = torch.isfinite(estimates).flatten(1).all(1).cpu()
    index = nearest_candidates(estimates, training, device=device)[:, 0]
    errors = [
        mse(estimates[top : top + ROWS].cpu(), training[index[top : top + ROWS].numpy()].pixels)
        for top in range(0, len(estimates), ROWS)
    ]
    nearest = Nearest([], [], [])
    for is_finite, position, error in zip(finite.tolist(), index.tolist(), torch.cat(errors).tolist(), strict=True):
        if is_finite:
            nearest.add(training.ids[position], error, position)
        else:
            nearest.add(None, None, None)
    return nearest


def outcomes(
    ids: Sequence[str], own: Sequence[float], nearest: Nearest, threshold: float, *, training: bool
) -> list[Outcome]:
    """Say of each image how its recovery ended. `training`: the images are training images themselves."""
    ended: list[Outcome] = []
    for name, error, other, distance in zip(ids, own, nearest.ids, nearest.mse, strict=True):
        if error < threshold:
            ended.append("recovered")
        elif distance is not None and distance < threshold and not (training and other == name):
            ended.append("another training image")
        else:
            ended.append("neither")
    return ended
