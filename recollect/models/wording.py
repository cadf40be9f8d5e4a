"""How messages name an option: as it is written in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence

SIGMOID = "sigmoid"  # as the last step of `output`: the model returns logits


def option(name: str, value: object) -> str:
    """Write an option with its value as in Python and as on the command line."""
    flag = f"--{name.replace('_', '-')}"
    return f"{name}={value!r} ({flag if value is True else f'{flag} {value}'})"


def size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def ends_in_sigmoid(output: str | int | None) -> bool:
    """Say whether the image is the sigmoid of what the model returns."""
    return str(output).split(".")[-1] == SIGMOID


def with_sigmoid(output: str | int | None) -> str:
    """Write the option for the sigmoid of what an option names."""
    return SIGMOID if output is None else f"{output}.{SIGMOID}"
