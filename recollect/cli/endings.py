"""How a command that ends early says so: one sentence and an exit code, never a traceback unless it is asked for."""

from __future__ import annotations

import errno
import traceback

from recollect.errors import INTERRUPTION, RAISED_BY_MODEL, InputError, Interrupted, first_line

UNFINISHED, USAGE_ERROR = 1, 2
RESUMES = "Finished work is kept, and the same command resumes it."
DETAILS = "For details run recollect --debug with the same command."


def ending_of(error: BaseException) -> tuple[str, int]:
    """Return the sentence and the exit code of a command that ended with this error."""
    if isinstance(error, KeyboardInterrupt):
        number = error.number if isinstance(error, Interrupted) else Interrupted.BY_KEYBOARD
        return f"\nrecollect: {INTERRUPTION}", 128 + number
    if isinstance(error, InputError):
        return f"recollect: {error}", USAGE_ERROR
    return _of_machine_or_model(error), UNFINISHED


def _of_machine_or_model(error: BaseException) -> str:
    reason = first_line(error).rstrip(".")
    if isinstance(error, ImportError):  # a broken installation, or a limit of memory
        return f"recollect: it cannot be loaded: {reason}."
    if _is_out_of_memory(error):
        return f"recollect: the memory does not suffice ({reason}). {_LESS} {RESUMES}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"recollect: the disk is full ({reason}). {RESUMES}"
    named = f"{type(error).__name__}: {reason}"
    if RAISED_BY_MODEL in getattr(error, "__notes__", ()):
        return f"recollect: the model raised {named}. {RESUMES} {DETAILS}"
    return f"recollect: an error that should not happen, {named}. {RESUMES} {DETAILS}"


def details_of(error: BaseException) -> str:
    """Write the traceback."""
    return "".join(traceback.format_exception(error))


def _is_out_of_memory(error: BaseException) -> bool:
    """Say whether memory could not be allocated; torch's own error is known by its name, so torch is not imported."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _ALLOCATION_FAILED)


_ALLOCATION_FAILED = ("can't allocate memory", "not enough memory", "bad_alloc", "can't start new thread")
_LESS = "Give fewer or smaller images (?count=N, ?size=N), or a machine with more memory."
