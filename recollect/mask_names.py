"""How masks are named in text, known without torch: a misspelt name is refused before torch is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recollect.errors import InputError

PAPER_MASK_NAMES = ("block", "half", "scatter", "frame", "stripes", "dust")
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


def no_such_mask(text: str, others: Sequence[str] = ()) -> InputError:
    """Return the error that lists all masks, and examples of other degradations where these are possible."""
    known = ", ".join([*PAPER_MASK_NAMES, "random:FRACTION", "random-each:FRACTION", "columns:NAME+NUMBER", *others])
    return InputError(f"There is no mask {text!r}. Known: {known}, or the path of a .png or .npy file.")
