"""Progress of an audit on a terminal; silent everywhere else."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Narration:
    """A bar that says what is being done; called with words, how far, of how much."""

    def __init__(self, *, quiet: bool = False) -> None:
        console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task: TaskID | None = None

    def __call__(self, words: str, done: float, total: float) -> None:
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(words, total=total)
        self._bar.update(self._task, description=words, completed=done, total=total)

    def __enter__(self) -> Narration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
