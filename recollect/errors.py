"""The one exception that is the user's to read, and two questions that many checks ask of what was given."""

from numbers import Integral, Real
from typing import Any


class InputError(ValueError):
    """What was given, what was expected, what to do about it."""


def is_number(value: Any) -> bool:
    """Whether it is a real number of Python's or numpy's; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether it is a whole number of Python's or numpy's, and at least so large."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
