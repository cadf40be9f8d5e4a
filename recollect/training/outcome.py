"""What a training run gives back, and what it tells on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from recollect.checkpoints import load_checkpoint_about
from recollect.errors import InputError
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
    """What a caller may show while training goes on."""

    point: Point
    next_milestone: float | None
    seconds_left: float | None  # to the next milestone; None where nothing honest can be said
    until: float | None = None
    said: tuple[str, ...] = ()  # lines of the log since the last report


@dataclass
class Training:
    """The outcome: the network holds the best weights, every milestone reached is listed, the log is in plain words."""

    network: nn.Module
    loss: float
    milestones: list[Milestone]
    reached: bool
    why: str
    log: list[str]
    history: list[Point] = field(repr=False)
    restarted_from: dict[str, float] | None = None  # seed and scale of the first weights, where given ones collapsed
    for_now: bool = False  # it was paused or interrupted: the same call goes on

    def __str__(self) -> str:
        return self.why


def spell(loss: float) -> str:
    """A loss as short as it can be told from others: 1e-08, 1.5e-05."""
    short = f"{loss:.0e}"
    return short if float(short) == loss else repr(loss)


BEST = "best.safetensors"  # of a run that ended before its last milestone
LOG = "log.txt"
MILESTONE_FILES = "loss-*.safetensors"


def milestone_path(folder: Path, wanted: float) -> Path:
    return folder / MILESTONE_FILES.replace("*", spell(wanted))


def milestones_in(folder: Path, identity: dict[str, Any]) -> list[Milestone]:
    """The milestones that earlier runs left in a folder, highest loss first; refuses those of another run."""
    found = []
    for path in folder.glob(MILESTONE_FILES):
        about = load_checkpoint_about(path)
        if any(about.get(name) != identity[name] for name in ("network", "recipe", "data_hash")):
            raise InputError(f"{path} is of another network, recipe or training set; choose another folder.")
        found.append(Milestone(about["milestone"], about["loss"], about["steps"], about["seconds"], path))
    return sorted(found, key=lambda m: m.wanted, reverse=True)
