"""Refuse to write into the repository while tests run, and to start a process there that could."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CACHES = {".hypothesis", ".pytest_cache", "__pycache__"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def changed_by_opening(path: Any, mode: str | None, flags: int) -> list[Any]:
    writes = flags & WRITING if mode is None else set(mode) & set("wax+")
    return [path] if writes else []


def changed_by_process(program: Any, arguments: Any, folder: Any, environment: Any) -> list[Any]:
    """Its working folder: commands write below it unless they are told otherwise."""
    return [folder or Path.cwd()]


def first(path: Any, *_: Any) -> list[Any]:
    return [path]


def both(source: Any, target: Any, *_: Any) -> list[Any]:
    return [source, target]


def second(source: Any, target: Any, *_: Any) -> list[Any]:
    return [target]


CHANGED: dict[str, Callable[..., list[Any]]] = {  # by Python's audit events
    "open": changed_by_opening, "subprocess.Popen": changed_by_process, "os.mkdir": first, "os.remove": first,
    "os.rmdir": first, "os.truncate": first, "shutil.rmtree": first, "os.rename": both, "os.link": second,
    "os.symlink": second,
}  # fmt: skip


def belongs_to_repository(path: Any) -> bool:
    if isinstance(path, int):  # a file that is open already
        return False
    full = Path(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100 - a link is what is changed, not where it leads
    return full.is_relative_to(ROOT) and not CACHES & set(full.relative_to(ROOT).parts)


class Guard:
    """An audit hook, which Python cannot remove: it is switched off instead."""

    active = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active or event not in CHANGED:
            return
        paths = [path for path in CHANGED[event](*arguments) if belongs_to_repository(path)]
        if paths:
            raise AssertionError(f"a test changes the repository: {event} {os.fsdecode(paths[0])}")


@contextmanager
def read_only_repository() -> Iterator[None]:
    guard = Guard()
    sys.addaudithook(guard)
    guard.active = True
    try:
        yield
    finally:
        guard.active = False
