"""A progress bar for audits, on a terminal alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recollect.auditing import AuditProgress


@contextmanager
def audit_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[AuditProgress]:
    """Give the `progress` that an audit calls; without a terminal nothing is shown."""
    console = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    disabled = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as bar:
        task = bar.add_task("opening the model and the images", total=None)

        def report(doing: str, done: float, total: float) -> None:
            bar.update(task, description=doing, completed=done, total=total)

        yield report
