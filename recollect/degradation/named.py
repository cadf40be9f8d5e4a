"""Any degradation by its name: the masks, blur:WIDTH and coarse:FACTOR."""

from __future__ import annotations

from typing import Any

import torch

from recollect.degradation.base import Degradation
from recollect.degradation.blur import Blur
from recollect.degradation.coarse import Coarse
from recollect.degradation.erasure import Erasure
from recollect.degradation.masks import Shape, mask
from recollect.errors import InputError


def degradation(what: Any, shape: Shape, *, count: int = 1, seed: int = 42) -> Degradation:
    """What `mask` reads, or `blur:1.5` (pixels), `coarse:4` (times), or a degradation as it is."""
    if isinstance(what, Degradation) and type(what) is not Erasure:
        return what
    kind, colon, value = what.partition(":") if isinstance(what, str) else ("", "", "")
    if kind == "blur" and colon:
        return Blur(torch.tensor([_number(value, float, "blur:1.5")]))
    if kind == "coarse" and colon:
        return Coarse(torch.tensor([_number(value, int, "coarse:4")]))
    return mask(what, shape, count=count, seed=seed)


def _number(text: str, kind: type, example: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(
            f"{text!r} is not a {'whole ' if kind is int else ''}number; write for example {example}."
        ) from None
