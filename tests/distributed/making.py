"""Tasks to be done on workers, and who did them."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from recollect.distributed.jobs import Budget, Job, Task


def nap(number: int, folder: Path, seconds: float) -> int:
    """Leaves a file that says who is at it."""
    (folder / f"{number}-{os.getpid()}").touch()
    time.sleep(seconds)
    (folder / f"{number}-{os.getpid()}").unlink()
    return number


def nap_elsewhere(number: int, folder: Path, machine: str) -> int:
    """Never ends on this machine; leaves a file there that says that it has begun."""
    import ray

    while ray.get_runtime_context().get_node_id() == machine:
        (folder / machine).touch()
        time.sleep(0.1)
    return number


def at_work(folder: Path) -> list[int]:
    """The processes that are in the middle of a task, or were when they ended."""
    return [int(path.name.split("-")[1]) for path in folder.iterdir()]


def naps(folder: Path, count: int, seconds: float, kept: list[int]) -> Job:
    def keep(number: int) -> str:
        kept.append(number)
        return f"kept {number}"

    def job(_budget: Budget, /) -> Iterator[Task]:
        for number in range(count):
            yield Task(f"nap {number}", nap, (number, folder, seconds), keep)

    return job


def one(do: Callable[..., object], *inputs: object, first: bool = False) -> Job:
    """A job of one task, whose line is what it gave."""

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task(do.__name__, do, inputs, str, first=first)

    return job


def end_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_once(once: Path) -> str:
    if not once.exists():
        once.touch()
        end_myself()
    return "ended once"


def refuse() -> None:
    raise ValueError("this cannot be computed\nand more lines that nobody wants")


def short_of_memory(once: Path) -> str:
    if not once.exists():
        once.touch()
        raise MemoryError("4 GiB were asked for")
    return "enough memory"


def who(large: bytes) -> tuple[int, int, int]:
    return os.getpid(), id(large), len(large)


def add_a_file(folder: Path) -> list[str]:
    before = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "new").write_bytes(b"new")
    return [str(folder), *before]


def one_pid(pids: list[int]) -> Job:
    """Finds the process of one worker."""

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task("pid", os.getpid, (), lambda pid: str(pids.append(pid)))

    return job


class Unable:
    """A worker on a machine that lacks something."""

    def __init__(self, _threads: int, _version: str) -> None:
        raise ModuleNotFoundError("No module named 'recollect'")

    def ready(self) -> None:
        """Never answered."""
