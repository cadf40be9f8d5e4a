"""How the rate falls where it does not stay (along a cosine or a line, again and longer if need be), and how many steps
the weights are averaged over meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from recollect.training.monitor import Limits, Point, seconds_to

FLOOR = 1e-3  # share of the rate that is left at the end of a fall
OF_BEHIND, OF_LEFT = 1 / 20, 1 / 50  # shares of the steps behind, and of those left of a fall, to average over
SHORTEST = 8
OF_RATE = 1.4  # power of a falling rate that the best loss goes by: 2 for the moving weights, 1 to 1.6 for an average


@dataclass(frozen=True)
class Fall:
    """One fall of the rate, over `length` steps from step `begin` on; without a length the rate stays."""

    length: int | None
    begin: int = 0
    straight: bool = False
    power: float = 1.0

    def share(self, steps: int, seconds: float, limits: Limits) -> float:
        """What is left of the rate here. A limit that comes before the end of the fall hastens it: the last decades
        of a loss come while the rate falls."""
        if self.length is None:
            return 1.0
        gone = min(1.0, max((steps - self.begin) / self.length, limits.used(seconds, steps)))
        return max(FLOOR, (1 - gone if self.straight else 0.5 * (1 + math.cos(math.pi * gone))) ** self.power)

    def seconds_to(self, loss: float, now: Point, limits: Limits) -> float | None:
        """Time left to a loss within this fall, if it goes as a power of the rate."""
        share = self.share(now.steps, now.seconds, limits)
        if self.length is None or not 0 < now.best < math.inf:
            return None
        wanted = share * (loss / now.best) ** (1 / OF_RATE)
        if wanted >= share or wanted <= FLOOR:
            return 0.0 if wanted >= share else None
        wanted **= 1 / self.power
        gone = 1 - wanted if self.straight else math.acos(2 * wanted - 1) / math.pi
        steps = min(self.begin + gone * self.length, gone * limits.steps)
        return max(0.0, min((steps - now.steps) * now.seconds / now.steps, gone * limits.seconds - now.seconds))

    def left(self, steps: int, seconds: float, limits: Limits) -> float:
        """Steps to the end of the fall, or to a limit that comes before it."""
        if self.length is None:
            return math.inf
        return max(0.0, min(self.begin + self.length - steps, limits.ahead(steps, seconds, steps)))

    def over(self, steps: int) -> bool:
        return self.length is not None and steps >= self.begin + self.length

    def again(self, steps: int) -> Fall:
        """The next one, twice as long, when this one did not get there."""
        return replace(self, length=self.length and 2 * self.length, begin=steps)


def time_left(fall: Fall, history: list[Point], loss: float, limits: Limits) -> float | None:
    """Seconds to a loss: as the run went on so far or as its rate falls, whichever is sooner. Early in a fall the first
    tells, then the second; once it is over, or beyond a limit, nothing does."""
    now = history[-1]
    if fall.over(now.steps):
        return None
    found = (seconds_to(history, loss), fall.seconds_to(loss, now, limits))
    until_limit = limits.ahead(now.seconds, now.seconds, now.steps)
    return min((seconds for seconds in found if seconds is not None and seconds <= until_limit), default=None)


def averaged_over(first: int, behind: int, left: float) -> int:
    """How many steps the average of the weights reaches back: more as the run goes on, which takes out more of a rate's
    noise, and fewer towards the end of a fall, where the weights of a while ago are worse ones. In powers of two of the
    first, since another number takes another CUDA graph."""
    wanted = min(max(first, OF_BEHIND * behind), max(SHORTEST, OF_LEFT * left))
    return max(1, math.floor(first * 2.0 ** math.floor(math.log2(wanted / first))))
