"""Plug-and-play ADMM for a degradation that is known (Abitbul & Dar 2024, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeGuard

import torch
from torch import Tensor

from recollect.degradation import Degradation, Erasure
from recollect.engine import Autoencoder, Runtime
from recollect.errors import InputError


@torch.no_grad()
def admm(f: Autoencoder, y: Tensor, theta: Degradation, *, gamma: float, steps: int, origin: float = 0.0) -> Tensor:
    """Estimate x for a given degradation theta (Algorithm 1).

    Args:
        f: The autoencoder.
        y: The damaged images.
        theta: The degradation, one for each image.
        gamma: ADMM's penalty.
        steps: Number of steps.
        origin: The start of v: zero in the model's own range of values.

    Returns:
        The estimate, in the shape of y.

    Examples:
        >>> import torch, recollect
        >>> from recollect.methods import admm
        >>> y = torch.ones(1, 3, 8, 8)
        >>> theta = recollect.mask("half", (3, 8, 8)).expand(y)
        >>> admm(lambda x: x, theta.apply(y), theta, gamma=0.5, steps=3).shape
        torch.Size([1, 3, 8, 8])
    """
    v = xi = torch.full_like(y, origin)
    u = torch.zeros_like(y)
    for prior in priors(f, steps, y):
        xi = theta.prox(v - u, y, gamma)  # line 6
        v = prior(xi + u)  # line 8: the autoencoder is the prior
        u = u + xi - v  # line 9
    return xi


def priors(f: Autoencoder, steps: int, y: Tensor) -> Sequence[Autoencoder]:
    """List the prior of each step: f itself, with the settings of that step if f has such, as for a falling noise."""
    schedule = getattr(f, "admm_schedule", None)
    rows = None if schedule is None else schedule(steps)
    prior: Callable[..., Tensor] = f
    return [prior] * steps if rows is None else [partial(prior, settings=row) for row in rows[:steps].to(y)]


def solve(f: Runtime, y: Tensor, theta: Degradation, *, gamma: float, steps: int) -> Tensor:
    """Run `admm`, or for erasures its accelerated form: the same steps in fewer passes over memory."""
    fused = f.fused_admm(gamma, steps)
    if fused and has_fused_steps(theta):
        return fused(y, theta.keep)
    return admm(f, y, theta, gamma=gamma, steps=steps, origin=f.origin)


def has_fused_steps(theta: Degradation) -> TypeGuard[Erasure]:
    """Say whether accelerated steps compute this degradation's prox."""
    return isinstance(theta, Erasure) and type(theta).prox is Erasure.prox


def check_admm(gamma: float, steps: int) -> None:
    """Refuse settings that ADMM cannot run with."""
    if not isinstance(gamma, (int, float)):
        raise InputError(f"gamma must be a number, got {gamma!r}.")
    if not gamma > 0:
        raise InputError(f"gamma must be positive, got {gamma}.")
    if gamma == math.inf:
        raise InputError(f"gamma must be finite, got {gamma}.")
    if not isinstance(steps, int) or steps < 1:
        raise InputError(f"At least one ADMM step is needed, got {steps}.")
