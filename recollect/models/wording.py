"""How messages name an option: as it is written in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence

FLAGS = {
    "input_range": "--range",
    "output_range": "--output-range",
    "mean": "--mean",
    "std": "--std",
    "output": "--output",
    "channels": "--channels",
    "batch": "--batch",
    "flat": "--flat",
    "weights": "--weights",
    "weights_key": "--weights-key",
    "device": "--device",
}


def option(name: str, value: object) -> str:
    """An option with its value, in both spellings."""
    flag = FLAGS[name] if value is True else f"{FLAGS[name]} {value}"
    return f"{name}={value!r} ({flag})"


def size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def first_line(error: BaseException) -> str:
    """The first line of another library's message, which may run over pages."""
    text = str(error).strip()
    return (text.splitlines()[0] if text else type(error).__name__)[:300]
