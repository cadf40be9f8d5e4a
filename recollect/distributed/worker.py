"""What runs on the machines of a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from recollect.errors import InputError
from recollect.records import atomically
from recollect.version import __version__


@dataclass(frozen=True)
class Files:
    """The files of a folder, on their way to another machine."""

    content: dict[str, bytes]

    @classmethod
    def of(cls, folder: Path) -> Files:
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return cls({str(path.relative_to(folder)): path.read_bytes() for path in paths})

    def write(self, folder: Path) -> None:
        for name, content in self.content.items():
            with atomically(folder / name) as file:
                file.write_bytes(content)


class Worker:
    """Does one task after the other, and holds on to the shared inputs that the next one needs too."""

    def __init__(self, threads: int, version: str) -> None:
        torch.set_num_threads(threads)
        self._version = version
        self._held: dict[Any, Any] = {}

    def ready(self) -> None:
        """Answered as soon as the worker is there."""

    def do(self, function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Files]]:
        """What the function gives, and the files that it left in its folders."""
        if self._version != __version__:
            raise InputError(f"This machine has recollect {__version__}, and {self._version} is what started the work.")
        self._hold([given for given in inputs if _is_reference(given)])
        with tempfile.TemporaryDirectory(prefix="recollect-") as place:
            folders = {i: Path(place) / str(i) for i, given in enumerate(inputs) if isinstance(given, Files)}
            for i, folder in folders.items():
                inputs[i].write(folder)
            given = [folders.get(i, self._held.get(x, x) if _is_reference(x) else x) for i, x in enumerate(inputs)]
            return function(*given), [Files.of(folder) for folder in folders.values()]

    def _hold(self, references: Sequence[Any]) -> None:
        import ray

        self._held = {r: self._held[r] if r in self._held else ray.get(r) for r in references}


def _is_reference(given: Any) -> bool:
    import ray

    return isinstance(given, ray.ObjectRef)
