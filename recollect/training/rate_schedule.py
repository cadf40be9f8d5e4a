"""The learning rate schedule: annealing with warm restarts, and how many steps the weights are averaged over."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from recollect.training.monitor import Limits, Point, seconds_to

Shape = Literal["cosine", "linear"]

FINAL_FACTOR = 1e-3  # of the peak rate, at the end of annealing
SHARE_OF_PAST, SHARE_OF_LEFT = 1 / 20, 1 / 50  # of the steps taken, and of those left of annealing, to average over
SHORTEST_AVERAGE = 8  # steps
LOSS_POWER = 1.4  # of an annealed rate, that the best loss follows: 2 for the weights, 1 to 1.6 for their average


@dataclass(frozen=True)
class Annealing:
    """Lowers the learning rate over `length` steps from step `start`; without a length the rate stays constant."""

    length: int | None
    start: int = 0
    shape: Shape = "cosine"
    power: float = 1.0

    def factor(self, steps: int, seconds: float, limits: Limits) -> float:
        """Return what to multiply the peak rate by.

        A limit before the end of annealing speeds it up, because the loss falls most at low rates.
        """
        if self.length is None:
            return 1.0
        progress = min(1.0, max((steps - self.start) / self.length, limits.share_used(seconds, steps)))
        return max(FINAL_FACTOR, self._curve(progress) ** self.power)

    def seconds_to(self, loss: float, now: Point, limits: Limits) -> float | None:
        """Estimate the time to a loss within this annealing, if it follows a power of the rate; None if unknown."""
        if self.length is None or not 0 < now.best < math.inf:
            return None
        factor = self.factor(now.steps, now.seconds, limits)
        factor_needed = factor * (loss / now.best) ** (1 / LOSS_POWER)
        if factor_needed >= factor:
            return 0.0
        if factor_needed <= FINAL_FACTOR:
            return None
        progress = self._inverse_curve(factor_needed ** (1 / self.power))
        steps = min(self.start + progress * self.length, progress * limits.steps)
        by_steps = (steps - now.steps) * now.seconds / now.steps
        return max(0.0, min(by_steps, progress * limits.seconds - now.seconds))

    def steps_left(self, steps: int, seconds: float, limits: Limits) -> float:
        """Return the steps to the end of annealing, or to a limit before it."""
        if self.length is None:
            return math.inf
        return max(0.0, min(self.start + self.length - steps, limits.remaining(steps, seconds, steps)))

    def finished(self, steps: int) -> bool:
        return self.length is not None and steps >= self.start + self.length

    def restarted(self, steps: int) -> Annealing:
        """Return the next annealing after a warm restart, twice as long."""
        return replace(self, length=self.length and 2 * self.length, start=steps)

    def _curve(self, progress: float) -> float:
        if self.shape == "linear":
            return 1 - progress
        return 0.5 * (1 + math.cos(math.pi * progress))

    def _inverse_curve(self, value: float) -> float:
        if self.shape == "linear":
            return 1 - value
        return math.acos(2 * value - 1) / math.pi


def time_left(annealing: Annealing, history: list[Point], loss: float, limits: Limits) -> float | None:
    """Estimate the seconds to a loss: by the curve so far or by the annealing, whichever is sooner; None if unknown."""
    now = history[-1]
    if annealing.finished(now.steps):
        return None
    estimates = (seconds_to(history, loss), annealing.seconds_to(loss, now, limits))
    until_limit = limits.remaining(now.seconds, now.seconds, now.steps)
    return min((seconds for seconds in estimates if seconds is not None and seconds <= until_limit), default=None)


def average_horizon(first: int, steps: int, steps_left: float) -> int:
    """Return how many steps to average the weights over.

    A longer average removes more of the rate's noise as the run continues. Towards the end of annealing it is shorter,
    because older weights are worse. The number is `first` times a power of two: each new one needs a new CUDA graph.
    """
    horizon = min(max(first, SHARE_OF_PAST * steps), max(SHORTEST_AVERAGE, SHARE_OF_LEFT * steps_left))
    return max(1, math.floor(first * 2.0 ** math.floor(math.log2(horizon / first))))
