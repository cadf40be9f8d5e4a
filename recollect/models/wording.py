"""How messages name an option: as it is written in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def option(name: str, value: object) -> str:
    """An option with its value, in both spellings."""
    flag = f"--{name.replace('_', '-')}"
    return f"{name}={value!r} ({flag if value is True else f'{flag} {value}'})"


def size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def first_line(error: BaseException) -> str:
    """The first line of another library's message, which may run over pages."""
    text = str(error).strip()
    return (text.splitlines()[0] if text else type(error).__name__)[:300]
