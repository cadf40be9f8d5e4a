"""How a command that ends early says so: one sentence and an exit code, never a traceback unless it is asked for."""

from __future__ import annotations

import errno
import traceback
from typing import Annotated

import typer

from recollect.errors import (
    INTERRUPTION,
    RAISED_BY_MODEL,
    InputError,
    Interrupted,
    exit_called,
    first_line,
    is_out_of_memory,
)

UNFINISHED, USAGE_ERROR = 1, 2
RESUMES = "Finished work is kept, and the same command resumes it."
NOT_RESUMED = ("canaries", "compare", "data", "extract", "plan", "report", "verify")  # commands that begin anew
TRIED = 16  # images with which models are tried before long work
DETAILS = "For details run recollect --debug with the same command."


def ask_for_traceback(ctx: typer.Context, wanted: bool) -> None:
    """Set the option of the root command, which prints errors."""
    if wanted:
        ctx.find_root().params["debug"] = True


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=ask_for_traceback, help="Print the traceback before the error message."),
]


def ending_of(error: BaseException, command: str | None = None) -> tuple[str, int]:
    """Return the sentence and the exit code of a command that ended with this error."""
    resumes = command not in NOT_RESUMED
    if isinstance(error, KeyboardInterrupt):
        number = error.number if isinstance(error, Interrupted) else Interrupted.BY_KEYBOARD
        return f"\nrecollect: {INTERRUPTION if resumes else 'interrupted.'}", 128 + number
    if isinstance(error, SystemExit):  # of a dataset, say
        error = exit_called("Code that recollect was given", error)
    if isinstance(error, InputError):
        return f"recollect: {error}", USAGE_ERROR
    sentence = _of_machine_or_model(error)
    return sentence if resumes else sentence.replace(f" {RESUMES}", ""), UNFINISHED


def _of_machine_or_model(error: BaseException) -> str:
    reason = first_line(error).rstrip(".")
    if isinstance(error, ImportError):  # a broken installation, or a limit of memory
        return f"recollect: it cannot be loaded: {reason}."
    if is_out_of_memory(error):
        return f"recollect: the memory does not suffice ({reason}). {_LESS} {RESUMES}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"recollect: the disk is full ({reason}). {RESUMES}"
    named = f"{type(error).__name__}: {reason}"
    for note in getattr(error, "__notes__", ()):
        if note.startswith(RAISED_BY_MODEL):
            given = note.removeprefix(RAISED_BY_MODEL)
            fewer = f" {_FEWER}" if int(given.split()[0]) > TRIED else ""
            return f"recollect: the model was given {given} and raised {named}.{fewer} {RESUMES} {DETAILS}"
    return f"recollect: an error that should not happen, {named}. {RESUMES} {DETAILS}"


def details_of(error: BaseException) -> str:
    """Write the traceback."""
    return "".join(traceback.format_exception(error))


_FEWER = f"It runs with {TRIED} images at once: add --chunk {TRIED}."
_LESS = "Give fewer or smaller images (?count=N, ?size=N), or a machine with more memory."
