"""Running many cells: jobs one after the other, within a time. A runner that spreads jobs over machines fits here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Budget:
    """How much time there is; without a number, all of it."""

    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - (time.monotonic() - self.began))


class Job(Protocol):
    """What can be done independently of other jobs; it gives a line for each piece as it is finished and kept."""

    def __call__(self, budget: Budget, /) -> Iterator[str]: ...


Tell = Callable[[str], None]
Runner = Callable[[Iterable[Job], Budget, Tell], bool]


def in_this_process(jobs: Iterable[Job], budget: Budget, tell: Tell) -> bool:
    """Jobs in their order; whether all were done before the time was over. What is finished is never lost."""
    for job in jobs:
        if not budget.left:
            return False
        for line in job(budget):
            tell(line)
            if not budget.left:
                return False
    return True
