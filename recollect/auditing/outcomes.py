"""How a recovery ended: on its image, on another training image, or on neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

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
