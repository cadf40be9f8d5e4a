"""The named masks and fills, and how text names other masks. Help and error messages need no torch for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.errors import InputError, is_number, read_share

PAPER_MASK_SUMMARIES = {  # `degradation/masks.py` draws each
    "block": "erases the centred square of half the height (25%)",
    "half": "erases the bottom half",
    "scatter": "erases each pixel with probability 1/2, one fixed draw",
    "frame": "erases all outside the centred square of 3/4 of the height (44%)",
    "stripes": "erases every second band of 1/16 of the height (50%)",
    "dust": "erases each pixel with probability 0.8, one fixed draw",
}
PAPER_MASK_NAMES = tuple(PAPER_MASK_SUMMARIES)
FILL_SUMMARIES = {  # `degradation/fills.py` makes the values of each
    "zero": "black",
    "constant": "one random colour an image",
    "noise": "random values",
    "images": "another image of the set, turned by 180 degrees",
}
RANDOM = ("random", "random-each")
COLUMNS = "columns"
_FILES = (".png", ".npy")


def is_mask(text: str) -> bool:
    """Return whether a text names a mask, by its own name, a rule or a file."""
    kind, colon, _ = text.partition(":")
    return text in PAPER_MASK_NAMES or (bool(colon) and kind in (*RANDOM, COLUMNS)) or is_mask_file(text)


def is_mask_file(text: str) -> bool:
    """Return whether a text ends like a file that masks are read from."""
    return Path(text).suffix.lower() in _FILES


def check_mask(text: str) -> None:
    """Refuse a rule or a file that is a mask of no images."""
    kind, _, value = text.partition(":")
    if kind in RANDOM:
        check_fraction(read_fraction(value))
    elif is_mask_file(text):
        check_mask_file(Path(text))


def read_fraction(text: str) -> float:
    """Read the share of the pixels that a random mask erases."""
    try:
        return read_share(text)
    except ValueError:
        raise InputError(f"{text!r} is not a fraction; write random:0.3 or random:30%.") from None


def check_fraction(fraction: Any) -> None:
    """Refuse what is no share of the pixels."""
    if not is_number(fraction) or not 0 <= fraction <= 1:
        raise InputError(f"The fraction of erased pixels must lie in [0, 1], got {fraction}.")


def check_mask_file(path: Path) -> None:
    """Refuse the path of a file that does not exist."""
    if not path.is_file():
        raise InputError(f"There is no mask file {path}.")


def no_such_mask(text: str, others: Sequence[str] = ()) -> InputError:
    """Return the error that lists all masks, and examples of other degradations where these are possible."""
    known = ", ".join([*PAPER_MASK_NAMES, "random:FRACTION", "random-each:FRACTION", "columns:NAME+NUMBER", *others])
    return InputError(f"There is no mask {text!r}. Known: {known}, or the path of a .png or .npy file.")
