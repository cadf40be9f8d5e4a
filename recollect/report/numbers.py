"""Numbers as a reader likes them; the page's script writes the same forms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

MASKS = ("block", "half", "scatter", "frame", "stripes", "dust")  # in the paper's numbering

METHODS = {
    "blind": "recovers image and mask in turns, told neither",
    "refined": "starts as blind, tries again where the model does not explain the result, and goes on until that rests",
    "known": "is told which pixels were erased: a reference, not an attack",
    "iterate": "applies the autoencoder over and over: the baseline",
    "ddnm": "inpaints with a general diffusion model that never saw this autoencoder",
    "zero-rule": "takes every zero for an erased pixel, then as known: what guessing the mask is worth",
    "biharmonic": "draws a smooth surface through the kept pixels, with no knowledge of any image",
    "known-400": "as known, with 400 steps in place of 40",
}


def percent(share: float) -> str:
    return f"{share:.1%}"


def scientific(value: float) -> str:
    """5e-4 as 5.0 × 10⁻⁴."""
    if not value or not math.isfinite(value):
        return "0" if value == 0 else "–"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits} × 10{str(int(power)).translate(_RAISED)}"


def power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_RAISED)}"


def decimals(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def decibels(mse: float) -> float:
    return -10 * math.log10(mse)


def grey_levels(mse: float) -> float:
    """A root mean square error on the scale of 8-bit pictures."""
    return 255 * math.sqrt(mse)


def plain_value(value: Any) -> str:
    """Any fact as text: numbers with thin spaces between thousands, lists with commas, tables with semicolons."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return scientific(value) if value and not 1e-3 <= abs(value) < 1e6 else f"{value:g}"
    if isinstance(value, (list, tuple)):
        between = "; " if any(isinstance(v, Mapping) for v in value) else ", "
        return between.join(plain_value(v) for v in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{label} {text}" for label, text in flattened(value))
    return "–" if value is None else str(value)


def flattened(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested facts as rows of name and text: settings.blind.gamma is `blind gamma`."""
    for name, value in facts.items():
        label = f"{prefix} {name}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from flattened(value, label)
        else:
            yield label, plain_value(value)
