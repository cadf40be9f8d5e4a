"""Watching a training run: when to lower the rate, when something went wrong, when to expect the next milestone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from recollect.errors import InputError

PATIENCE = 1000  # steps without progress before anything is done about it, or a tenth of all steps if that is more
PROGRESS = 0.93  # the averaged loss must fall to this share of itself within the patience
CUT = 0.5
SPIKE = 30.0  # a loss this many times the best is a spike; this many times what any image could cost, a divergence
COLLAPSED = 0.5  # a network still at this share of a constant output's loss has learned nothing ...
COLLAPSED_FALLING = 0.9  # ... and at this one where the rate is still to fall
ONE_IMAGE = 1e-12  # a constant output this good is the goal itself: there is one image, or copies of one
FORESIGHT = 120  # nothing honest can be said of a time so many times the one behind
PAUSED, INTERRUPTED = "paused", "interrupted"
LOWEST_RATE = 1e-9  # below this a step no longer changes float32 weights


class Verdict(Enum):
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
    """How long a run may go on, counted from its first start."""

    seconds: float = math.inf
    steps: float = math.inf
    pause: float = math.inf  # seconds after which it stops for now; unlike a limit, the rate does not fall for it

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and self.steps >= 0 and self.pause >= 0):
            raise InputError(f"A limit cannot be negative, got {self.seconds:g} seconds and {self.steps:g} steps.")

    def reached(self, seconds: float, steps: int) -> str | None:
        """Which limit stops a run that is here, in words."""
        if seconds >= self.seconds:
            return f"stopped at the limit of {self.seconds:g} s"
        if steps >= self.steps:
            return f"stopped at the limit of {self.steps} steps"
        return PAUSED if seconds >= self.pause else None

    def used(self, seconds: float, steps: int) -> float:
        """Which share of a limit is behind, of the one that comes first; nothing where there is none."""
        return max(seconds / max(self.seconds, 1e-9), steps / max(self.steps, 1e-9))

    def ahead(self, behind: float, seconds: float, steps: int) -> float:
        """How much is ahead of a run before a limit, at the pace so far, of what so much is `behind` of."""
        used = self.used(seconds, steps)
        return behind * (1 / used - 1) if used else math.inf


@dataclass
class Watch:
    """Judges each point against those before it; `constant_loss` is what the best constant output would score."""

    constant_loss: float
    patience: int = PATIENCE
    collapsed: float = COLLAPSED
    history: list[Point] = field(default_factory=list)
    since: int = 0  # steps at the last intervention: earlier points no longer count

    def judge(self, point: Point) -> Verdict:
        self.history.append(point)
        recent = [p for p in self.history if p.steps > self.since]
        best = min((p.best for p in recent[:-1]), default=math.inf)
        if not math.isfinite(point.loss) or not math.isfinite(point.averaged):
            return Verdict.DIVERGED
        if point.best > SPIKE:  # no output in [0, 1] costs more than 1
            return Verdict.DIVERGED
        if point.loss > SPIKE * best and point.averaged > SPIKE * best:
            return Verdict.SPIKE
        patience = max(self.patience, point.steps // 10)
        earlier = [p for p in recent if p.steps <= point.steps - patience]
        if not earlier or point.best < PROGRESS * earlier[-1].best:
            return Verdict.FINE
        learned_nothing = self.constant_loss > ONE_IMAGE and point.best > self.collapsed * self.constant_loss
        return Verdict.COLLAPSED if learned_nothing else Verdict.PLATEAU

    def acted(self, steps: int) -> None:
        """Something was changed here: give it time before judging again."""
        self.since = steps


def seconds_to(history: list[Point], loss: float) -> float | None:
    """Time left to a loss, if it goes on falling as the recent half of the run did (a power of the steps)."""
    if len(history) < 4:
        return None
    now = history[-1]
    past = min(history, key=lambda p: abs(p.steps - now.steps / 2))
    if not 0 < now.best < past.best or past.steps >= now.steps:
        return None
    power = math.log(past.best / now.best) / math.log(now.steps / past.steps)
    log_steps = math.log(now.steps) + math.log(max(1.0, now.best / loss)) / power
    if log_steps > math.log(now.steps * FORESIGHT):
        return None
    return max(0.0, math.exp(log_steps) - now.steps) * now.seconds / now.steps
