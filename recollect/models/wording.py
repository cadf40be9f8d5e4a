"""How messages name an option: as it is written in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def option(name: str, value: object) -> str:
    """Write an option with its value as in Python and as on the command line."""
    flag = f"--{name.replace('_', '-')}"
    return f"{name}={value!r} ({flag if value is True else f'{flag} {value}'})"


def size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def first_line(error: BaseException) -> str:
    """Take the first line of another library's message, without control characters that a file put there."""
    text = str(error).strip()
    line = text.splitlines()[0] if text else type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in line)[:300]
