"""What a training run returns, and what it reports on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from recollect.training.monitor import Point


@dataclass(frozen=True)
class Milestone:
    """A loss that was reached, measured over all images in full float32."""

    wanted: float
    loss: float
    steps: int
    seconds: float
    path: Path | None


@dataclass(frozen=True)
class Progress:
    """What a caller may show while a network is trained."""

    point: Point
    next_milestone: float | None
    seconds_left: float | None  # to the next milestone; None if unknown
    until: float | None = None
    messages: tuple[str, ...] = ()  # lines of the log since the last report


@dataclass
class Training:
    """The result of a training run: the network with its best weights, and how it got there.

    Args:
        network: The trained network.
        loss: The mean square error over all images.
        milestones: Losses that were reached on the way, with their checkpoints.
        reached: Whether the wanted loss was reached.
        why: Why the training ended.
        log: Lines on collapses, spikes and plateaus.
        history: Points of the loss curve.
        restarted_from: Seed and scale of the initial weights, if the given ones collapsed.
        suspended: Paused or interrupted: the same call continues the run.
        precision: The arithmetic of the steps, with the step from which it holds.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> network = recollect.FullyConnected(images.shape, layers=2, width=32)
        >>> training = recollect.train_to_loss(network, images, until=1e-3)
        >>> training.loss <= 1e-3
        True
    """

    network: nn.Module
    loss: float
    milestones: list[Milestone]
    reached: bool
    why: str  # it stopped
    log: list[str]
    history: list[Point] = field(repr=False)
    restarted_from: dict[str, float] | None = None  # seed and scale of the initial weights, if the given ones collapsed
    suspended: bool = False  # paused or interrupted: the same call continues the run
    precision: list[dict[str, Any]] = field(default_factory=list, repr=False)  # of the steps, where it changed

    def __str__(self) -> str:
        return self.why


def format_loss(loss: float) -> str:
    """Write a loss in the shortest form that no other loss has: 1e-08, 1.5e-05."""
    short = f"{loss:.0e}"
    return short if float(short) == loss else repr(loss)
