"""Running many cells: jobs give tasks, a runner has them done, here or on other machines, and keeps what they find."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """A time limit that counts from now; without a number there is none."""

    seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.clock())

    @property
    def spent(self) -> float:
        return self.clock() - self.began

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - self.spent)


@dataclass(frozen=True, eq=False)
class Shared(Generic[T]):
    """A large input of many tasks: made once, when it is first needed, and sent once to each machine."""

    make: Callable[[], T]

    @cached_property
    def here(self) -> T:
        return self.make()


@dataclass(frozen=True)
class Folder:
    """A folder that a task reads and writes; where it is done elsewhere, the files go there and come back."""

    here: Path


@dataclass(frozen=True, eq=False)
class Task:
    """A piece of a job that can be done on any machine, and as often as needed: only `keep` has an effect, once."""

    name: str
    do: Callable[..., Any]  # a function of a module, that other machines find under the same name
    inputs: tuple[Any, ...]  # what it is given: small things as they are, large ones Shared
    keep: Callable[[Any], str]  # called here with what was found; the line that tells of it
    first: bool = False  # the job's next task can only be told when this one is kept


class Job(Protocol):
    """What can be done independently of other jobs, as tasks that do not depend on each other unless one is first."""

    def __call__(self, budget: Budget, /) -> Iterator[Task]: ...


Tell = Callable[[str], None]
Runner = Callable[[Iterable[Job], Budget, Tell], bool]


def in_this_process(jobs: Iterable[Job], budget: Budget, tell: Tell) -> bool:
    """Jobs in their order; whether all were done before the time was over. What is finished is never lost."""
    for job in jobs:
        if not budget.left:
            return False
        for task in job(budget):
            inputs = [i.here if isinstance(i, Shared | Folder) else i for i in task.inputs]
            tell(task.keep(task.do(*inputs)))
            if not budget.left:
                return False
    return True
