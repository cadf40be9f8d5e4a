"""Jobs made of tasks. A runner runs the tasks, here or on other machines, and keeps their results."""

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
    """A time limit that counts from now; infinite by default."""

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
    def value(self) -> T:
        """The input in this process."""
        return self.make()


@dataclass(frozen=True)
class Folder:
    """A folder that a task reads and writes; its files are copied to another machine and back."""

    path: Path


@dataclass(frozen=True, eq=False)
class Task:
    """A part of a job that any machine can run, more than once if need be; only `keep` has an effect, once."""

    name: str
    function: Callable[..., Any]  # of a module, so that other machines can import it
    inputs: tuple[Any, ...]  # of the function: small ones as they are, large ones Shared
    keep: Callable[[Any], str]  # called in this process with the result; returns a line for the log
    first: bool = False  # the job makes its next task only after this result is kept


class Job(Protocol):
    """Work that is independent of other jobs; its tasks are independent unless one is `first`."""

    def __call__(self, budget: Budget, /) -> Iterator[Task]: ...


Log = Callable[[str], None]
Runner = Callable[[Iterable[Job], Budget, Log], bool]


def in_this_process(jobs: Iterable[Job], budget: Budget, log: Log) -> bool:
    """Run jobs in their order and keep each result; return whether all were done within the budget."""
    for job in jobs:
        if not budget.left:
            return False
        for task in job(budget):
            log(task.keep(task.function(*map(_local, task.inputs))))
            if not budget.left:
                return False
    return True


def _local(given: Any) -> Any:
    """Return an input as a function of this process takes it."""
    match given:
        case Shared():
            return given.value
        case Folder():
            return given.path
    return given
