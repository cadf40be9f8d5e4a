"""SPEC.md's formulas taken literally: float64, numpy, one image at a time, the paper's own stopping rule.

Slow on purpose and without a clever line: the fast code is right when it agrees with this. Images are flat vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = np.ndarray
Network = Callable[[Any], Any]  # of a vector, or of what the test makes of it


def prox(keep: Vector, z: Vector, y: Vector, gamma: float) -> Vector:
    g = gamma / 2
    out = np.empty(len(y))
    for i in range(len(y)):
        out[i] = (y[i] + g * z[i]) / (1 + g) if keep[i] else z[i]
    return out


def refit(x: Vector, y: Vector) -> Vector:
    return np.array([(x[i] - y[i]) ** 2 <= y[i] ** 2 for i in range(len(y))])


def admm(f: Network, y: Vector, keep: Vector, gamma: float, steps: int) -> Vector:
    v, u = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(steps):
        xi = prox(keep, v - u, y, gamma)
        v = f(xi + u)
        u = u + xi - v
    return xi


def mse(a: Vector, b: Vector) -> float:
    return sum((a[i] - b[i]) ** 2 for i in range(len(a))) / len(a)


@dataclass
class Path:
    """All rounds of a blind recovery: `x[t]` is round t's estimate (x[0] is empty), `keep[0]` the start."""

    x: list[Vector]
    keep: list[Vector]
    calm: list[int]  # successive estimates closer than 1e-9 up to round t, counted
    stopped: bool

    @property
    def rounds(self) -> int:
        return len(self.x) - 1


def blind(f: Network, y: Vector, start: Vector, gamma: float, steps: int, limit: int) -> Path:
    """Round after round until the MSE between successive estimates is below 1e-9 for three rounds running."""
    path = Path([np.empty(0)], [start], [0], stopped=False)
    for t in range(1, limit + 1):
        x = admm(f, y, path.keep[-1], gamma, steps)
        close = t > 1 and mse(x, path.x[-1]) < 1e-9
        path.x.append(x)
        path.keep.append(refit(x, y))
        path.calm.append(path.calm[-1] + 1 if close else 0)
        if path.calm[-1] == 3:
            path.stopped = True
            break
    return path


def known(f: Network, y: Vector, keep: Vector, gamma: float, steps: int, paste: bool) -> Vector:
    x = admm(f, y, keep, gamma, steps)
    if paste:
        x = np.array([y[i] if keep[i] else x[i] for i in range(len(y))])
    return x


def iterate(f: Network, y: Vector, tolerance: float, limit: int) -> tuple[Vector, int, bool]:
    """The estimate, the steps taken, and whether the last step was below the tolerance."""
    x = y
    for step in range(1, limit + 1):
        before, x = x, f(x)
        if mse(x, before) < tolerance:
            return x, step, True
    return x, limit, False
