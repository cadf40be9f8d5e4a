"""Numbers and facts as text; the page's script writes numbers in the same forms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.counting import counted as counted  # templates call it as numbers.counted
from recollect.scoring import rounded_percent

MISSING = "–"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float) -> str:
    return f"{share:.1%}"


def whole_percent(share: float) -> str:
    """Write whole percents, but never 0% of something nor 100% of not all."""
    return f"{rounded_percent(share)}%"


def two_digits(value: float) -> str:
    """Write two significant digits without a power of ten; what is smaller than 0.001 is written as below it."""
    if not math.isfinite(value):
        return MISSING
    if value < 1e-3:
        return "< 0.001"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def calendar_date(started: Any) -> str:
    """Write the day of an ISO date and time; nothing if it is none."""
    try:
        moment = datetime.fromisoformat(str(started))
    except ValueError:
        return ""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def scientific(value: float) -> str:
    """Write 5e-4 as 5.0 × 10⁻⁴, with spaces at which no line ends."""
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits}\N{NARROW NO-BREAK SPACE}×\N{NARROW NO-BREAK SPACE}{power_of_ten(int(exponent))}"


def decimals(value: float | None, digits: int = 1) -> str:
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.{digits}f}"


def decibels(mse: float) -> float:
    return -10 * math.log10(mse)


def grey_levels(mse: float) -> float:
    """Return the root mean square error on the scale of 8-bit pictures."""
    return 255 * math.sqrt(mse)


def named(names: Sequence[str]) -> str:
    """Write names as a list in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def percent_above(share: float, limit: float) -> str:
    """Write a share with as few digits as show that it is above a limit."""
    texts = [rounded_percent(share), f"{100 * share:.3g}", f"{100 * share:.9g}"]
    return next((text for text in texts if float(text) > 100 * limit), texts[-1]) + "%"


def percent_within(bound: float, limit: float) -> str:
    """Write the bound of a share within a limit, rounded up to two digits, but not above the limit."""
    if bound <= 0:
        return "0%"
    digits = 10.0 ** (1 - math.floor(math.log10(100 * bound)))
    return f"{min(math.ceil(100 * bound * digits) / digits, 100 * limit):.9g}%"


def as_text(value: Any) -> str:
    """Write any fact of audit.json as text."""
    match value:
        case None:
            return MISSING
        case bool():
            return "yes" if value else "no"
        case int():
            return _whole_number(value)
        case float():
            return _real_number(value)
        case list() | tuple():
            return _listed(value)
        case Mapping():
            return ", ".join(f"{label} {text}" for label, text in flattened(value))
        case _:
            return str(value)


def flattened(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """List nested facts as rows of name and text: settings.blind.gamma becomes `blind gamma`."""
    for name, value in facts.items():
        label = f"{prefix} {name}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from flattened(value, label)
        else:
            yield label, as_text(value)


def _whole_number(value: int) -> str:
    if abs(value) < 10_000:
        return str(value)
    return f"{value:,}".replace(",", "\u202f")


def _real_number(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:g}"
    return scientific(value)


def _listed(values: Sequence[Any]) -> str:
    """Put semicolons between tables, because a table has commas of its own."""
    if not values:
        return "none"
    if any(isinstance(value, Mapping) for value in values):
        return "; ".join(as_text(value) for value in values)
    return ", ".join(as_text(value) for value in values)
