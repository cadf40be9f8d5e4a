"""ADMM continued from an estimate until each image is at rest, with a degradation that is fixed or refitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.transfers import to_device
from recollect.engine import Active, Runtime, run
from recollect.image_values import all_finite, mean_square, per_image
from recollect.methods.admm import has_fused_steps
from recollect.methods.blind import CONVERGED_MSE
from recollect.recovery import Recovery, Stop

CHECK_EVERY = 10  # steps, after which images at rest leave
ROUND_STEPS = 40  # of ADMM, in the paper
REFIT_EVERY = 5  # steps, where the degradation is refitted
REST = 1e-12  # |xi - v|^2 over the image's values; float32 leaves about 1e-14


@dataclass(frozen=True, eq=False)
class PolishBatch(Active):
    y: Tensor
    v: Tensor
    u: Tensor
    limit: Tensor  # steps, of each image
    settled: Tensor  # the last refit changed nothing


def polish(
    f: Runtime, y: Tensor, x: Tensor, theta: Degradation, *, gamma: float, limits: Tensor, refit: bool = False,
    rest: float = REST, round_steps: int = ROUND_STEPS,
) -> Recovery:  # fmt: skip
    """Run ADMM on from v = x and u = 0 until xi and v differ by less than `rest` (MSE): at most `limits` steps each.

    With `refit`, the degradation is estimated too. A refit compares y with what the model returns, not with
    xi: kept values of xi are pulled towards y, so they would confirm themselves. With blind's `round_steps`, the steps
    that blind had captured are used again.
    """

    def begin(rows: slice) -> PolishBatch:
        batch = Active.begin(y, theta[rows], rows, f.device)
        v, u, limit = to_device(x[rows], f.device), torch.zeros_like(batch.estimate), to_device(limits[rows], f.device)
        settled = torch.full_like(limit, not refit, dtype=torch.bool)
        return PolishBatch(**vars(replace(batch, estimate=v)), y=batch.estimate, v=v, u=u, limit=limit, settled=settled)

    def step(batch: PolishBatch) -> PolishBatch:
        if not refit:
            return _stopped(_steps(f, batch, gamma, CHECK_EVERY, round_steps), batch.estimate, rest)
        return _stopped(_refitted(_steps(f, batch, gamma, REFIT_EVERY, round_steps)), batch.estimate, rest)

    return run(len(y), f, begin, step)


def _steps(f: Runtime, batch: PolishBatch, gamma: float, count: int, round_steps: int) -> PolishBatch:
    left = (batch.limit - batch.steps).clamp(max=count)
    fused, theta = f.fused_admm(gamma, round_steps), batch.degradation
    assert theta is not None
    if fused and has_fused_steps(theta) and bool((left == count).all()):
        xi, v, u = fused.carry_on(batch.y, theta.keep, batch.v, batch.u, count)
    else:
        xi, v, u = _plain_steps(f, batch, gamma, left)
    finite = all_finite(v) & all_finite(xi)
    estimate = torch.where(per_image(finite, xi), xi, batch.estimate)
    stop = torch.where(finite, Stop.RUNNING, Stop.DIVERGED)
    rounds = batch.rounds + 1
    return replace(batch, estimate=estimate, v=v, u=u, rounds=rounds, steps=batch.steps + left, stop=stop)


def _plain_steps(f: Runtime, batch: PolishBatch, gamma: float, left: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y, v, u, theta = batch.y, batch.v, batch.u, batch.degradation
    assert theta is not None
    xi = v
    for number in range(int(left.max())):
        going = per_image(number < left, y)  # the limit of one image may come before that of others beside it
        xi = torch.where(going, theta.prox(v - u, y, gamma), xi)
        v = torch.where(going, f(xi + u), v)
        u = u + xi - v
    return xi, v, u


def _refitted(batch: PolishBatch) -> PolishBatch:
    before = batch.degradation
    assert before is not None
    theta = before.refit(batch.v, batch.y)
    return replace(batch, degradation=theta, settled=theta.fingerprint() == before.fingerprint())


def _stopped(batch: PolishBatch, before: Tensor, rest: float) -> PolishBatch:
    """Stop images at rest, and those at their limit; the latter have converged if they no longer change."""
    calm = batch.settled & (mean_square(batch.estimate - before) < CONVERGED_MSE)
    at_limit = torch.where(calm, Stop.CONVERGED, Stop.DONE)
    stop = torch.where(batch.steps < batch.limit, batch.stop, at_limit)
    at_rest = batch.settled & (mean_square(batch.estimate - batch.v) < rest)
    stop = torch.where(at_rest, Stop.CONVERGED, stop)
    return replace(batch, stop=torch.where(batch.stop == Stop.DIVERGED, batch.stop, stop))
