"""One palette for the report, the figures and the charts of the documentation.

The colours are Okabe and Ito's (2008), which people with colour-blindness can tell apart, darkened for white paper
and lightened for a dark screen. A method names its colour; a method of another package gets one that is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple


class Colour(NamedTuple):
    """One colour, for light and for dark backgrounds."""

    light: str
    dark: str


PALETTE: dict[str, Colour] = {
    "blue": Colour("#0072b2", "#56b4e9"),
    "olive": Colour("#7a6a00", "#f0e442"),
    "green": Colour("#00835f", "#2fc795"),
    "orange": Colour("#d55e00", "#f08a3c"),
    "pink": Colour("#b0508a", "#e39ac6"),
    "grey": Colour("#4b5560", "#b6bec7"),
    "brown": Colour("#7d4b2a", "#cf9f7d"),
    "violet": Colour("#5b4fa2", "#b3a6f0"),
    "teal": Colour("#16707f", "#66c9d8"),
}
GRID, FRAME = "#d9dde2", "#9aa5b1"  # lines behind and around the data of a chart
HEAT = ("#000004", "#3b0f70", "#8c2981", "#de4968", "#fe9f6d", "#fcfdbf")  # from dark to light, so also legible in grey
ERROR_LEVELS = (0.01, 100.0)  # ends of HEAT in error maps, in 8-bit grey levels; the scale between is logarithmic


def assign_colours(wanted: Sequence[str | None]) -> list[str]:
    """Name a colour for each method: the one it wants and has first, else one that no other wants, else any in turn."""
    free = cycle([name for name in PALETTE if name not in wanted] or PALETTE)
    assigned: list[str] = []
    for colour in wanted:
        if colour is None or colour not in PALETTE or colour in assigned:
            colour = next(free)
        assigned.append(colour)
    return assigned
