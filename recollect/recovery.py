"""What every method returns: per image the estimate, the degradation estimate, and why it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from torch import Tensor

from recollect.counting import counted
from recollect.degradation import Degradation
from recollect.per_image import PerImage


class Stop(IntEnum):
    """Why the recovery of an image ended.

    Attributes:
        RUNNING: Still running.
        CONVERGED: Another round would not change the image.
        CYCLE: Mask estimates repeat.
        LIMIT: Not settled within the rounds allowed.
        DIVERGED: Values stopped being finite.
        DONE: The fixed number of steps was run.

    Examples:
        >>> from recollect import Stop
        >>> Stop(1).name
        'CONVERGED'
    """

    RUNNING = 0
    CONVERGED = 1
    CYCLE = 2
    LIMIT = 3
    DIVERGED = 4
    DONE = 5

    @property
    def description(self) -> str:
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    Stop.RUNNING: "still running",
    Stop.CONVERGED: "converged: another round would not change it",
    Stop.CYCLE: "cycle: mask estimates repeat for ever; of their images, the one that the model moves least is kept",
    Stop.LIMIT: "limit: not settled within the rounds allowed",
    Stop.DIVERGED: "diverged: values stopped being finite, the last finite estimate is kept",
    Stop.DONE: "done: the fixed number of steps was run",
}


@dataclass(frozen=True, eq=False)
class Recovery(PerImage):
    """The outcome of a method, one row per image.

    Args:
        estimate: The estimated images.
        degradation: The estimated degradation; None from methods that estimate none.
        rounds: Rounds of each image.
        steps: Steps of each image, each with one application of the autoencoder.
        stop: A code of `Stop` for each image.
        cycle: Length of the cycle that each image ended in; 0 for none.

    Examples:
        >>> import torch, recollect
        >>> recovery = recollect.Iterate()(lambda x: x, torch.zeros(2, 3, 8, 8))
        >>> [stop.name for stop in recovery.stops]
        ['CONVERGED', 'CONVERGED']
    """

    estimate: Tensor
    degradation: Degradation | None  # the estimated one; None from methods that estimate none
    rounds: Tensor
    steps: Tensor  # of ADMM or iteration, each with one application of the autoencoder (ADMM's last needs none)
    stop: Tensor  # Stop codes
    cycle: Tensor | None = field(default=None, kw_only=True)  # rounds of the cycle that an image ended in; 0: in none

    @property
    def stops(self) -> list[Stop]:
        return [Stop(int(code)) for code in self.stop]

    def __str__(self) -> str:
        counts = Counter(self.stops)
        lines = [f"  {n} {stop.description}" for stop, n in sorted(counts.items())]
        return "\n".join([f"Recovery of {counted(len(self), 'image')}:", *lines])


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a trace callback sees after every round, of the images that have not stopped."""

    index: Tensor  # which images
    round: Tensor  # each image's own count of rounds, from 1
    estimate: Tensor
    degradation: Degradation | None


Trace = Callable[[Snapshot], None]
Progress = Callable[[int, int], None]  # images finished, images in all


def progress_of_part(progress: Progress | None, start: int, total: int) -> Progress | None:
    """Report what is done of a part, whose first image is number `start`, as done of the whole."""
    if progress is None:
        return None
    return lambda done, _count: progress(start + done, total)
