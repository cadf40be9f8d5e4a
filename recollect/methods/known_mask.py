"""Recovery with the true degradation: the reference that shows what not knowing it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from recollect.engine import Active, Runtime
from recollect.image_values import all_finite, per_image
from recollect.methods.admm import check_admm, solve
from recollect.methods.base import Method
from recollect.recovery import Stop


@dataclass(frozen=True)
class KnownMask(Method):
    """ADMM with the true degradation: a reference, not an attack.

    `KnownMask()(f, y, truth)` returns a `Recovery`.

    Args:
        gamma: How far an estimate may depart from the damaged image.
        steps: ADMM steps.
        paste: Whether kept values of y are put into the result: right when there is no noise.

    Examples:
        >>> import recollect
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> recovery = recollect.KnownMask()(lambda x: x, seen.y, seen.truth)
        >>> bool((recovery.estimate[:, :, :4] == images.pixels[:, :, :4]).all())
        True
    """

    gamma: float = 0.5
    steps: int = 40
    paste: bool = True  # put the kept values of y into the result: right when there is no noise

    name: ClassVar[str] = "known"
    summary: ClassVar[str] = "a reference, not an attack: the recovery of blind, but with the mask known"
    label: ClassVar[str] = "known (mask given)"
    knows_truth: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    headline_subject: ClassVar[str] = "a method that knows which pixels were erased"
    colour: ClassVar[str | None] = "grey"
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_admm(self.gamma, self.steps)

    def step(self, f: Runtime, batch: Active) -> Active:
        """Run ADMM once; that is all."""
        y, theta = batch.estimate, batch.degradation
        assert theta is not None
        xi = solve(f, y, theta, gamma=self.gamma, steps=self.steps)
        finite = all_finite(xi)
        x = torch.where(per_image(finite, xi), xi, y)
        return replace(
            batch,
            estimate=theta.paste(x, y) if self.paste else x,
            rounds=batch.rounds + 1,
            steps=batch.steps + self.steps,
            stop=torch.where(finite, Stop.DONE, Stop.DIVERGED),
        )


@dataclass(frozen=True)
class KnownMaskLong(KnownMask):
    """`KnownMask` with ten times the steps."""

    steps: int = 400

    name: ClassVar[str] = "known-400"
    summary: ClassVar[str] = "known with 400 steps in place of 40"
    label: ClassVar[str] = "known, 400 steps"
    by_default: ClassVar[bool] = False
    recorded_as: ClassVar[str] = "KnownMask"
    colour: ClassVar[str | None] = "violet"
    order: ClassVar[int] = 5
