"""The actor that runs tasks on a machine of a cluster."""

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
    """The files of a folder, to be sent to another machine."""

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
    """Run one task after the other, and keep the shared inputs that the next one needs too."""

    def __init__(self, threads: int, version: str) -> None:
        torch.set_num_threads(threads)
        self._version = version
        self._shared: dict[Any, Any] = {}

    def ready(self) -> None:
        """Answer as soon as the worker has started."""

    def run(self, function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Files]]:
        """Return the result of the function, and the files that it left in its folders."""
        if self._version != __version__:
            raise InputError(f"This machine has recollect {__version__}, but the work was started by {self._version}.")
        self._fetch([given for given in inputs if _is_reference(given)])
        with tempfile.TemporaryDirectory(prefix="recollect-") as temporary:
            arguments, folders = [], []
            for number, given in enumerate(inputs):
                if isinstance(given, Files):
                    folders.append(Path(temporary) / str(number))
                    given.write(folders[-1])
                    arguments.append(folders[-1])
                elif _is_reference(given):
                    arguments.append(self._shared[given])
                else:
                    arguments.append(given)
            return function(*arguments), [Files.of(folder) for folder in folders]

    def _fetch(self, references: Sequence[Any]) -> None:
        """Fetch shared inputs that are new, and drop those that this task does not need."""
        import ray

        kept = {r: self._shared[r] for r in references if r in self._shared}
        self._shared = kept | {r: ray.get(r) for r in references if r not in kept}


def _is_reference(given: Any) -> bool:
    import ray

    return isinstance(given, ray.ObjectRef)
