"""What a researcher would write from the paper, to be timed beside recollect: plain PyTorch, one image or one batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Network = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Settings:
    gamma: float
    steps: int = 40
    limit: int = 100


@dataclass(frozen=True)
class Outcome:
    """Estimates, the rounds each image took, and whether the paper's rule ended it."""

    x: Tensor
    rounds: Tensor
    stopped: Tensor


def admm(f: Network, y: Tensor, keep: Tensor, settings: Settings) -> Tensor:
    g = settings.gamma / 2
    v, u = torch.zeros_like(y), torch.zeros_like(y)
    for _ in range(settings.steps):
        z = v - u
        x = torch.where(keep, (y + g * z) / (1 + g), z)
        v = f(x + u)
        u = u + x - v
    return x


@torch.no_grad()
def recover(f: Network, y: Tensor, keep: Tensor, settings: Settings, until: float = float("inf")) -> Outcome:
    """Rounds until every image given has had three of them with a change below 1e-9 (or until a time of the clock)."""
    calm = torch.zeros(len(y), dtype=torch.int64, device=y.device)
    rounds = torch.zeros_like(calm)
    before: Tensor | None = None
    for _ in range(settings.limit):
        x = admm(f, y, keep, settings)
        keep = (x - y) ** 2 <= y**2
        rounds += calm < 3
        if before is not None:
            close = ((x - before) ** 2).mean((1, 2, 3)) < 1e-9
            calm = torch.where(calm >= 3, calm, torch.where(close, calm + 1, 0))
        before = x
        if bool((calm >= 3).all()) or time.perf_counter() > until:
            break
    return Outcome(x, rounds, calm >= 3)


def recover_one_by_one(
    f: Network, y: Tensor, keep: Tensor, settings: Settings, budget: float, order: Tensor
) -> tuple[Tensor, Outcome]:
    """Image after image in this order, for about `budget` seconds: which ones, and what came of them."""
    done: list[Outcome] = []
    started = time.perf_counter()
    for i in order.tolist():
        done.append(recover(f, y[i : i + 1], keep[i : i + 1], settings))
        if time.perf_counter() - started > budget:
            break
    joined = (torch.cat([getattr(one, name) for one in done]) for name in ("x", "rounds", "stopped"))
    return order[: len(done)], Outcome(*joined)
