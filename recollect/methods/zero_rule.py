"""The baseline a sceptic asks for: pixels that are zero were erased, the rest were kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from recollect.degradation import Degradation, Erasure
from recollect.engine import Active, Runtime
from recollect.image_values import any_channel
from recollect.methods.known_mask import KnownMask


@dataclass(frozen=True)
class ZeroRule(KnownMask):
    """ADMM with the mask read off y: a pixel is erased where all its channels are zero.

    `ZeroRule()(f, y)` returns a `Recovery`.

    Args:
        gamma: How far an estimate may depart from the damaged image.
        steps: ADMM steps.
        paste: Whether kept values of y are put into the result.

    Examples:
        >>> import recollect
        >>> from recollect.methods import ZeroRule
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> print(ZeroRule()(lambda x: x, seen.y).degradation)
        50.0% erased
    """

    name: ClassVar[str] = "zero-rule"
    summary: ClassVar[str] = "a simple guess: takes every zero for an erased pixel"
    label: ClassVar[str] = "zero rule"
    knows_truth: ClassVar[bool] = False
    by_default: ClassVar[bool] = False
    needs_black_fill: ClassVar[bool] = True
    headline_subject: ClassVar[str] = ""  # an attack, unlike its base
    colour: ClassVar[str | None] = "olive"
    order: ClassVar[int] = 6

    def begin(self, f: Runtime, y: Tensor, truth: Degradation | None, rows: slice) -> Active:
        guess = Erasure(any_channel(y[rows] != 0)).expand(y[rows])
        return Active.begin(y, guess, rows, f.device)
