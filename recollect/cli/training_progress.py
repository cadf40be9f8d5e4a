"""Progress of a training in a terminal: one line with loss, rate and time left, and the log above it."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from recollect.cli.printing import echo
from recollect.errors import Interrupted
from recollect.training import Progress


@contextmanager
def training_report(console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """Give the `report` that train_to_loss calls; without a terminal nothing is shown."""
    console = console or Console(stderr=True)
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield Display(bar, bar.add_task("", total=1.0))


class Interrupts:
    """Says whether Ctrl-C was pressed or SIGTERM came; a second signal ends the run at once."""

    number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    def raise_noted(self) -> NoReturn:
        """Raise what the signal would have raised."""
        raise Interrupted(self.number or Interrupted.BY_KEYBOARD)

    def note(self, number: int, _frame: object) -> None:
        """Note a first signal; raise at a second one."""
        if self.number is not None:
            self.raise_noted()
        self.number = number
        echo("stopping at the next measurement of the loss, to save the run; once more to stop at once", err=True)


@contextmanager
def interrupts_noted() -> Iterator[Interrupts]:
    """Note signals in place of raising, so that a training can save itself."""
    interrupts = Interrupts()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}  # as with nohup
    for number in before:
        signal.signal(number, interrupts.note)
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Display:
    """Shows progress by decades of the loss, from the first loss to the last milestone."""

    def __init__(self, bar: Bar, task: TaskID) -> None:
        self.bar, self.task = bar, task
        self.first: float | None = None

    def __call__(self, progress: Progress) -> None:
        if self.bar.disable:
            return
        for line in progress.messages:
            self.bar.console.print(line, markup=False, highlight=False)  # the log has brackets
        self.bar.update(self.task, completed=self._share(progress), description=describe(progress))

    def _share(self, progress: Progress) -> float:
        """Compute the share of decades that are done."""
        loss = min(progress.point.loss, progress.point.averaged)
        if progress.until is None:
            return 1.0
        if not 0 < loss < math.inf:
            return 0.0
        self.first = max(self.first or loss, loss)
        if self.first <= progress.until:
            return 1.0
        return math.log(self.first / loss) / math.log(self.first / progress.until)


def describe(progress: Progress) -> str:
    """loss 3.2e-05  rate 1.0e-03  step 1200  1e-05 in about 0:12"""
    point = progress.point
    text = f"loss {min(point.loss, point.averaged):.1e}  rate {point.rate:.1e}  step {point.steps}"
    if progress.next_milestone is None:
        return text
    return f"{text}  {progress.next_milestone:.0e} {_time(progress.seconds_left)}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "not in sight"
    if seconds > 99 * 3600:
        return "in days"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"in about {hours}:{minutes:02}:{rest:02}" if hours else f"in about {minutes}:{rest:02}"
