"""The baseline a sceptic asks for: pixels that are zero were erased, the rest were kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from recollect.degradation import Erasure
from recollect.engine.runtime import Autoencoder, check_observation
from recollect.methods.admm import KnownMask, check_admm
from recollect.methods.base import Method
from recollect.recovery import Progress, Recovery, Trace


@dataclass(frozen=True)
class ZeroRule(Method):
    """ADMM with the mask read off y: a pixel is erased where all its channels are zero."""

    gamma: float = 0.5
    steps: int = 40
    paste: bool = True  # put the values of y that it takes for kept into the result: right when there is no noise

    name: ClassVar[str] = "zero-rule"
    summary: ClassVar[str] = "a simple guess: takes every zero for an erased pixel"
    label: ClassVar[str] = "zero rule"
    only_black: ClassVar[bool] = True
    colour: ClassVar[str | None] = "olive"
    order: ClassVar[int] = 6

    def __post_init__(self) -> None:
        check_admm(self.gamma, self.steps)

    def __call__(
        self,
        f: Autoencoder,
        y: Tensor,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        check_observation(y)
        guess = Erasure((y != 0).any(1, keepdim=True))
        return KnownMask(self.gamma, self.steps, self.paste)(f, y, guess, chunk=chunk, trace=trace, progress=progress)
