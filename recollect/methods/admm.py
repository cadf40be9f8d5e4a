"""Recovery for a degradation that is known: plug-and-play ADMM (Abitbul & Dar 2024, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from recollect.accelerate.fused_admm import ErasureSteps, has_erasure_prox
from recollect.degradation import Degradation
from recollect.engine.runtime import Autoencoder, Ready, ready
from recollect.engine.working_set import InWork, work_through
from recollect.errors import InputError
from recollect.image_values import all_finite, per_image
from recollect.methods.base import Method
from recollect.recovery import Progress, Recovery, Stop, Trace


@torch.no_grad()
def admm(f: Autoencoder, y: Tensor, theta: Degradation, *, gamma: float, steps: int) -> Tensor:
    """Estimate x for a given degradation theta (Algorithm 1)."""
    v = u = xi = torch.zeros_like(y)
    for _ in range(steps):
        xi = theta.prox(v - u, y, gamma)  # line 6
        v = f(xi + u)  # line 8: the autoencoder is the prior
        u = u + xi - v  # line 9
    return xi


class Solver:
    """`admm` for batch after batch: the same estimates, the quickest way there is for the degradation and device."""

    def __init__(self, f: Ready, gamma: float, steps: int) -> None:
        self._f, self._gamma, self._steps = f, gamma, steps

    @cached_property
    def _for_erasures(self) -> ErasureSteps:
        return ErasureSteps(self._f, self._gamma, self._steps)

    def __call__(self, y: Tensor, theta: Degradation) -> Tensor:
        if has_erasure_prox(theta):
            return self._for_erasures(y, theta)
        return admm(self._f, y, theta, gamma=self._gamma, steps=self._steps)


def check_admm(gamma: float, steps: int) -> None:
    """Refuse settings that ADMM cannot run with."""
    if not isinstance(gamma, (int, float)):
        raise InputError(f"gamma must be a number, got {gamma!r}.")
    if not gamma > 0 or gamma == math.inf:
        raise InputError(f"gamma must be {'finite' if gamma == math.inf else 'positive'}, got {gamma}.")
    if not isinstance(steps, int) or steps < 1:
        raise InputError(f"At least one ADMM step is needed, got {steps}.")


@dataclass(frozen=True)
class KnownMask(Method):
    """ADMM with the true degradation: the reference that shows what not knowing it costs."""

    gamma: float = 0.5
    steps: int = 40
    paste: bool = True  # put the kept values of y into the result: right when there is no noise

    name: ClassVar[str] = "known"
    summary: ClassVar[str] = "a reference, not an attack: the same recovery, told which pixels were erased"
    label: ClassVar[str] = "known (mask given)"
    knows_truth: ClassVar[bool] = True
    by_default: ClassVar[bool] = True
    knowledge: ClassVar[str] = "a method that knows which pixels were erased"
    colour: ClassVar[str | None] = "grey"
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_admm(self.gamma, self.steps)

    def __call__(
        self,
        f: Autoencoder,
        y: Tensor,
        truth: Degradation,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        if not isinstance(truth, Degradation):
            raise InputError(f"The true degradation is one like Erasure, not a {type(truth).__name__}.")
        with ready(f, y, chunk) as f:
            truth = truth.expand(y)
            solve = Solver(f, self.gamma, self.steps)

            def enter(some: slice) -> InWork:
                return InWork.begin(y, truth[some], some, f.device)

            return work_through(len(y), f, enter, lambda batch: self._finish(solve, batch), trace, progress)

    def _finish(self, solve: Solver, batch: InWork) -> InWork:
        y, truth = batch.estimate, batch.degradation
        assert truth is not None
        xi = solve(y, truth)
        finite = all_finite(xi)
        x = torch.where(per_image(finite, xi), xi, y)
        return replace(
            batch,
            estimate=truth.paste(x, y) if self.paste else x,
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
    preset_of: ClassVar[str] = "KnownMask"
    colour: ClassVar[str | None] = "violet"
    order: ClassVar[int] = 5
