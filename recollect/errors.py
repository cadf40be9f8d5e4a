"""The one exception for users, the one that a signal raises, other libraries' errors, and numbers."""

import errno
import math
from numbers import Integral, Real
from typing import Any

from recollect.visible import visible

RAISED_BY_MODEL = "The model raised this error, given "  # a note on errors of the audited model begins so
INTERRUPTION = "interrupted; finished work is kept, and the same command resumes it."
LONGEST_REASON = 300  # characters of another library's message that are repeated
_IN_TORCHSCRIPT = "The following operation failed in the TorchScript interpreter."  # its traceback follows, then why
_ALLOCATION_FAILED = (  # in messages of torch, CUDA's libraries and onnxruntime, whose errors have no kind of their own
    "can't allocate memory", "not enough memory", "bad_alloc", "can't start new thread", "CUDA error: out of memory",
    "_STATUS_ALLOC_FAILED", "Failed to allocate memory",
)  # fmt: skip


class InputError(ValueError):
    """A user's mistake: what was given, what was expected, what to do about it.

    On the command line its sentence is shown without a traceback.

    Examples:
        >>> import recollect
        >>> try:
        ...     recollect.load("photo")
        ... except recollect.InputError as mistake:
        ...     print(type(mistake).__name__)
        InputError
    """


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to end: Ctrl-C, or SIGTERM."""

    BY_KEYBOARD = 2  # SIGINT

    def __init__(self, number: int = BY_KEYBOARD) -> None:
        super().__init__()
        self.number = number


def exit_called(what: str, error: SystemExit) -> BaseException:
    """Return the error for code of the user's that called sys.exit: its exit code must not be the command's own."""
    if hasattr(error, "ray_terminate_msg"):  # Ray ends a worker so, wherever that worker is
        return error
    return InputError(f"{what} called sys.exit({error.code!r}), which would end this process; remove that call.")


def first_line(error: BaseException) -> str:
    """Take the first line of another library's message, control characters that a file put there written as escapes.

    A line that ends in a colon, or as onnxruntime announces dimensions, says nothing without the next one.
    """
    first, *others = _lines(error)
    if first == _IN_TORCHSCRIPT:
        return last_line(error)
    if first.endswith((":", "for the following indices")) and others:
        first = f"{first} {others[0].strip()}"
    return visible(first)[:LONGEST_REASON]


def last_line(error: BaseException) -> str:
    """Take the last line of another library's message: in a traceback, the line that says what was wrong."""
    return visible(_lines(error)[-1].strip())[:LONGEST_REASON]


def _lines(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether memory could not be allocated; torch's own error is known by its name, so torch is not imported."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(message in str(error) for message in _ALLOCATION_FAILED)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or numpy; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any, least: int = 0) -> bool:
    """Return whether a value is a whole number of Python or numpy, `least` or more."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def read_share(text: str) -> float:
    """Read a share such as 30% or 0.3; a ValueError where the text is none."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number of at least zero."""
    if not is_whole(seed):
        raise InputError(f"A seed is a whole number, zero or more; got {seed!r}.")


def check_positive(name: str, value: Any, *choices: str) -> None:
    """Refuse what is neither a positive number nor one of these choices; None is left out."""
    if value is None or value in choices:
        return
    if not is_number(value):
        raise InputError(f"{name} is a number or {' or '.join(map(repr, choices))}, not {value!r}.")
    if not 0 < float(value) < math.inf:
        raise InputError(f"{name} is a positive number, got {value}.")
