"""How the rate falls where it does not stay: along a cosine or a line, again and longer if need be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from recollect.training.control import Limits, Point

FLOOR = 1e-3  # share of the rate that is left at the end of a fall


@dataclass(frozen=True)
class Fall:
    """One fall of the rate, over `length` steps from step `begin` on; without a length the rate stays."""

    length: int | None
    begin: int = 0
    straight: bool = False

    def share(self, steps: int, seconds: float, limits: Limits) -> float:
        """What is left of the rate here. A limit that comes before the end of the fall hastens it: the last decades
        of a loss come while the rate falls."""
        if self.length is None:
            return 1.0
        gone = min(1.0, max((steps - self.begin) / self.length, limits.used(seconds, steps)))
        return max(FLOOR, 1 - gone if self.straight else 0.5 * (1 + math.cos(math.pi * gone)))

    def seconds_to(self, loss: float, now: Point, limits: Limits) -> float | None:
        """Time left to a loss within this fall, towards whose end it goes as the square of the rate."""
        share = self.share(now.steps, now.seconds, limits)
        if self.length is None or not 0 < now.best < math.inf:
            return None
        wanted = share * math.sqrt(loss / now.best)
        if wanted >= share or wanted <= FLOOR:
            return 0.0 if wanted >= share else None
        gone = 1 - wanted if self.straight else math.acos(2 * wanted - 1) / math.pi
        steps = min(self.begin + gone * self.length, gone * limits.steps)
        return max(0.0, min((steps - now.steps) * now.seconds / now.steps, gone * limits.seconds - now.seconds))

    def over(self, steps: int) -> bool:
        return self.length is not None and steps >= self.begin + self.length

    def again(self, steps: int) -> Fall:
        """The next one, twice as long, when this one did not get there."""
        return replace(self, length=self.length and 2 * self.length, begin=steps)
