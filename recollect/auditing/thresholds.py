"""When an image counts as recovered: accurately, by eye, or below an error of the user's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from recollect.errors import InputError, is_number
from recollect.scoring import ACCURATE, APPROXIMATE


@dataclass(frozen=True)
class Threshold:
    """A mean square error, below which an image counts as recovered, and its name."""

    name: str
    mse: float

    def __str__(self) -> str:
        return f"MSE below {self.mse:.0e}" if self in NAMED.values() else f"MSE below {self.mse:g}"


EXACT = Threshold("exact", ACCURATE)
APPROXIMATELY = Threshold("approximate", APPROXIMATE)  # by eye the same picture
NAMED = {threshold.name: threshold for threshold in (EXACT, APPROXIMATELY)}


def read_threshold(given: Any) -> Threshold:
    """Read a name, or a mean square error as a number or a text."""
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    try:
        mse = float(given) if isinstance(given, str) or is_number(given) else math.nan
    except ValueError:
        mse = math.nan
    if not 0 < mse < math.inf:
        raise InputError(f"A threshold is exact, approximate or a mean square error such as 1e-4, not {given!r}.")
    return next((named for named in NAMED.values() if named.mse == mse), Threshold("own", mse))


def supported_by(train_loss: float) -> Threshold:
    """Choose the strictest threshold that a model's fit supports: no recovery is more exact than the fit."""
    return EXACT if train_loss <= EXACT.mse else APPROXIMATELY
