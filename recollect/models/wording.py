"""How messages name an option: as it is written in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def option(name: str, value: object) -> str:
    """Write an option with its value as in Python and as on the command line."""
    flag = f"--{name.replace('_', '-')}"
    return f"{name}={value!r} ({flag if value is True else f'{flag} {value}'})"


def size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"
