"""Any degradation by its name: a mask, or a degradation that says its own name, such as blur:1.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.degradation.base import Degradation, Shape
from recollect.degradation.erasure import Erasure
from recollect.degradation.masks import mask
from recollect.mask_names import is_mask, no_such_mask
from recollect.registry import Registry

DEGRADATIONS: Registry[type[Degradation]] = Registry("degradation", "recollect.degradation", Degradation)


def degradation(what: Any, shape: Shape, *, count: int = 1, seed: int = 42, columns: Sequence[str] = ()) -> Degradation:
    """Make the degradation that `what` names, for images of `shape`; `columns` are the names of the columns of rows.

    `what` is anything that `mask` reads, a name of `DEGRADATIONS` with its value (`blur:1.5`, `coarse:4`), or a
    degradation, which is returned as it is.
    """
    if isinstance(what, Degradation) and type(what) is not Erasure:
        return what
    if isinstance(what, str):
        name, _, value = what.partition(":")
        if name in DEGRADATIONS:
            return DEGRADATIONS[name].parse(value, shape)
        if not is_mask(what):
            raise no_such_mask(what, [family.example for family in DEGRADATIONS.values()])
    return mask(what, shape, count=count, seed=seed, columns=columns)
