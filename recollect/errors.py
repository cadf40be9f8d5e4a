"""The one exception that is the user's to read, how a command that ends early tells it, and two common checks."""

from numbers import Integral, Real
from typing import Any

USAGE_ERROR, INTERRUPTED = 2, 130  # exit codes


class InputError(ValueError):
    """What was given, what was expected, what to do about it."""


def told(ended: InputError | KeyboardInterrupt) -> tuple[str, int]:
    """The line and the exit code of a command that ended so."""
    if isinstance(ended, InputError):
        return f"recollect: {ended}", USAGE_ERROR
    words = "interrupted; finished work is kept, and the same command resumes it."
    return f"\nrecollect: {words}", INTERRUPTED


def is_number(value: Any) -> bool:
    """Whether it is a real number of Python's or numpy's; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether it is a whole number of Python's or numpy's, and at least so large."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_seed(seed: Any) -> None:
    if not is_whole(seed):
        raise InputError(f"A seed is a whole number, zero or more; got {seed!r}.")
