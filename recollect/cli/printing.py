"""What commands print: text of strangers made visible, and the output of models kept apart from results."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import typer

from recollect.visible import visible

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text; control characters in it are written as escapes."""
    typer.echo(visible(text), err=err, nl=nl)


def visible_console() -> Console:
    """Make a console for stdout that writes control characters of what it renders as escapes."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return VisibleConsole()


@contextmanager
def plain_warnings(*always: type[Warning]) -> Iterator[None]:
    """Print warnings as one sentence on stderr, without the line of Python; those named are always printed."""
    with warnings.catch_warnings():
        for kind in always:
            warnings.simplefilter("always", kind)
        warnings.showwarning = lambda message, *_, **__: echo(str(message), err=True)
        yield


@contextmanager
def output_on_stderr() -> Iterator[None]:
    """Send what models print, in Python or below it, to stderr: stdout is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
