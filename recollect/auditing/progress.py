"""How an audit reports its progress: to a caller, as one bar with the time left, or as lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recollect.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

AuditProgress = Callable[[str, float, float], None]  # what is being done, how far, of how much
OPENING = "opening the model and the images"
LINES = 10  # without a terminal: one line for each tenth of the audit


def no_progress(_doing: str, _done: float, _total: float) -> None:
    """Report nothing."""


def tell_on_stderr(sentence: str) -> None:
    """Print a sentence that the user has to read."""
    sys.stderr.write(f"{visible(sentence)}\n")


def tell_nothing(_sentence: str) -> None:
    """Leave a sentence out."""


@contextmanager
def shown_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[AuditProgress]:
    """Give the `progress` that an audit calls: one bar in a terminal or a notebook, lines elsewhere."""
    from rich.console import Console

    console = console or Console(stderr=True)
    if quiet:
        yield no_progress
    elif console.is_terminal or console.is_jupyter:
        with _bar(console) as report:
            yield report
    else:
        yield _lines(console)


@contextmanager
def _bar(console: Console) -> Iterator[AuditProgress]:
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task(OPENING, total=None)

        def report(doing: str, done: float, total: float) -> None:
            bar.update(task, description=visible(doing), completed=done, total=total)

        yield report


def _lines(console: Console) -> AuditProgress:
    """Print a line whenever another tenth is done."""
    printed = -1

    def report(doing: str, done: float, total: float) -> None:
        nonlocal printed
        tenth = int(LINES * done / total) if total else LINES
        if tenth > printed:
            printed = tenth
            console.print(
                f"{100 * tenth // LINES}% done: {visible(doing)}", markup=False, highlight=False, soft_wrap=True
            )

    return report
