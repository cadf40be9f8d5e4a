"""Judge a training run by its loss curve, and estimate when it reaches a loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from recollect.errors import InputError

PATIENCE = 1000  # steps without progress before an intervention, or a tenth of all steps if that is more
PROGRESS = 0.93  # the best loss must fall to this share of itself within the patience
SPIKE = 30.0  # a loss this many times the best is a spike; an absolute loss above it is a divergence
COLLAPSED = 0.5  # a network still at this share of a constant output's loss has learned nothing ...
COLLAPSED_WHILE_ANNEALING = 0.9  # ... or at this share while the learning rate is being annealed
SINGLE_IMAGE_LOSS = 1e-12  # a constant output this good is the goal itself: the set is one image, or copies of one
LONGEST_FORECAST = 120  # times the steps so far; a curve says nothing about the time beyond
PAUSED, INTERRUPTED = "paused", "interrupted"


class Verdict(Enum):
    """What a loss curve shows."""

    FINE = "fine"
    PLATEAU = "plateau"
    SPIKE = "spike"
    DIVERGED = "divergence"
    COLLAPSED = "collapse"


@dataclass(frozen=True)
class Point:
    """The state of a run at the end of a window of steps."""

    seconds: float
    steps: int
    loss: float  # geometric mean over the window's steps
    averaged: float  # loss of the averaged weights
    rate: float

    @property
    def best(self) -> float:
        return min(self.loss, self.averaged)


@dataclass(frozen=True)
class Limits:
    """How long a run may take, counted from its first start."""

    seconds: float = math.inf
    steps: float = math.inf
    pause: float = math.inf  # seconds after which the run is saved and stops; the learning rate ignores it

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and self.steps >= 0 and self.pause >= 0):
            raise InputError(f"A limit cannot be negative, got {self.seconds:g} seconds and {self.steps:g} steps.")

    def reached(self, seconds: float, steps: int) -> str | None:
        """Say which limit stops a run after this time and these steps; None if none does."""
        if seconds >= self.seconds:
            return f"stopped at the limit of {self.seconds:g} s"
        if steps >= self.steps:
            return f"stopped at the limit of {self.steps} steps"
        return PAUSED if seconds >= self.pause else None

    def share_used(self, seconds: float, steps: int) -> float:
        """Return the share of the limit that comes first; zero without a limit."""
        return max(seconds / max(self.seconds, 1e-9), steps / max(self.steps, 1e-9))

    def remaining(self, spent: float, seconds: float, steps: int) -> float:
        """Return how much of a quantity is left before a limit, at the pace so far, if `spent` of it is used."""
        used = self.share_used(seconds, steps)
        return spent * (1 / used - 1) if used else math.inf


@dataclass
class Monitor:
    """Compares each point with those before it; `constant_loss` is the loss of the best constant output."""

    constant_loss: float
    patience: int = PATIENCE
    collapsed: float = COLLAPSED
    history: list[Point] = field(default_factory=list)
    last_intervention: int = 0  # steps; points up to it no longer count

    def judge(self, point: Point) -> Verdict:
        """Add a point to the curve and say what the curve shows."""
        self.history.append(point)
        recent = [p for p in self.history if p.steps > self.last_intervention]
        if _has_diverged(point):
            return Verdict.DIVERGED
        best_before = min((p.best for p in recent[:-1]), default=math.inf)
        if point.best > SPIKE * best_before:
            return Verdict.SPIKE
        if self._progresses(recent, point):
            return Verdict.FINE
        return Verdict.COLLAPSED if self._has_learned_nothing(point) else Verdict.PLATEAU

    def intervened(self, steps: int) -> None:
        """Start judging anew: the run was changed at this step and needs time to respond."""
        self.last_intervention = steps

    def _progresses(self, recent: list[Point], now: Point) -> bool:
        """Whether the loss fell within the patience, or the patience is not over yet."""
        patience = max(self.patience, now.steps // 10)
        before = [p for p in recent if p.steps <= now.steps - patience]
        return not before or now.best < PROGRESS * before[-1].best

    def _has_learned_nothing(self, point: Point) -> bool:
        return self.constant_loss > SINGLE_IMAGE_LOSS and point.best > self.collapsed * self.constant_loss


def _has_diverged(point: Point) -> bool:
    """No output in [0, 1] has a loss above 1."""
    return not math.isfinite(point.loss) or not math.isfinite(point.averaged) or point.best > SPIKE


def seconds_to(history: list[Point], loss: float) -> float | None:
    """Estimate the time to a loss by the power law of the recent half of the run; None if unknown."""
    if len(history) < 4:
        return None
    now = history[-1]
    past = min(history, key=lambda p: abs(p.steps - now.steps / 2))
    if not 0 < now.best < past.best or past.steps >= now.steps:
        return None
    power = math.log(past.best / now.best) / math.log(now.steps / past.steps)
    log_steps = math.log(now.steps) + math.log(max(1.0, now.best / loss)) / power
    if log_steps > math.log(now.steps * LONGEST_FORECAST):
        return None
    return max(0.0, math.exp(log_steps) - now.steps) * now.seconds / now.steps
