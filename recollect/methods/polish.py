"""ADMM carried on from an estimate, with a degradation that no longer changes, until each image is at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.transfers import moved
from recollect.engine.runtime import Autoencoder, Ready, ready
from recollect.engine.working_set import InWork, work_through
from recollect.image_values import all_finite, mean_square, per_image
from recollect.recovery import Recovery, Stop

LOOK = 10  # steps between two looks at whether an image is at rest
REST = 1e-12  # |xi - v|^2 over the image's values; float32 leaves about 1e-14


@dataclass(frozen=True, eq=False)
class _InWork(InWork):
    y: Tensor
    v: Tensor
    u: Tensor
    limit: Tensor  # steps, of each image


def polish(
    f: Autoencoder, y: Tensor, x: Tensor, theta: Degradation, *, gamma: float, limits: Tensor, chunk: int | None = None
) -> Recovery:
    """From v = x and u = 0: at most `limits` steps, one or more for each image."""
    with ready(f, y, chunk) as f:

        def enter(some: slice) -> _InWork:
            begun = InWork.begin(y, theta[some], some, f.device)
            v, u, limit = moved(x[some], f.device), torch.zeros_like(begun.estimate), moved(limits[some], f.device)
            return _InWork(**vars(replace(begun, estimate=v)), y=begun.estimate, v=v, u=u, limit=limit)

        return work_through(len(y), f, enter, lambda batch: _steps(f, batch, gamma), None, None)


def _steps(f: Ready, batch: _InWork, gamma: float) -> _InWork:
    y, v, u, theta = batch.y, batch.v, batch.u, batch.degradation
    assert theta is not None
    left, xi = (batch.limit - batch.steps).clamp(max=LOOK), v
    for number in range(int(left.max())):
        going = per_image(number < left, y)  # an image's last look may be shorter than those of others beside it
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
