"""ADMM carried on from an estimate, with a degradation that no longer changes, until each image is at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.transfers import moved
from recollect.engine import Active, Runtime, run
from recollect.image_values import all_finite, mean_square, per_image
from recollect.recovery import Recovery, Stop

CHECK_EVERY = 10  # steps, after which images at rest leave
REST = 1e-12  # |xi - v|^2 over the image's values; float32 leaves about 1e-14


@dataclass(frozen=True, eq=False)
class PolishBatch(Active):
    y: Tensor
    v: Tensor
    u: Tensor
    limit: Tensor  # steps, of each image


def polish(f: Runtime, y: Tensor, x: Tensor, theta: Degradation, *, gamma: float, limits: Tensor) -> Recovery:
    """Run ADMM on from v = x and u = 0: at most `limits` steps, one or more for each image."""

    def begin(rows: slice) -> PolishBatch:
        batch = Active.begin(y, theta[rows], rows, f.device)
        v, u, limit = moved(x[rows], f.device), torch.zeros_like(batch.estimate), moved(limits[rows], f.device)
        return PolishBatch(**vars(replace(batch, estimate=v)), y=batch.estimate, v=v, u=u, limit=limit)

    return run(len(y), f, begin, lambda batch: _steps(f, batch, gamma))


def _steps(f: Runtime, batch: PolishBatch, gamma: float) -> PolishBatch:
    y, v, u, theta = batch.y, batch.v, batch.u, batch.degradation
    assert theta is not None
    left, xi = (batch.limit - batch.steps).clamp(max=CHECK_EVERY), v
    for number in range(int(left.max())):
        going = per_image(number < left, y)  # the limit of one image may come before that of others beside it
        xi = torch.where(going, theta.prox(v - u, y, gamma), xi)
        v = torch.where(going, f(xi + u), v)
        u = u + xi - v
    finite, steps = all_finite(v) & all_finite(xi), batch.steps + left
    stop = torch.where(steps >= batch.limit, Stop.DONE, Stop.RUNNING)
    stop = torch.where(mean_square(xi - v) < REST, Stop.CONVERGED, stop)
    return replace(
        batch, estimate=torch.where(per_image(finite, xi), xi, batch.estimate), v=v, u=u, rounds=batch.rounds + 1,
        steps=steps, stop=torch.where(finite, stop, Stop.DIVERGED),
    )  # fmt: skip
