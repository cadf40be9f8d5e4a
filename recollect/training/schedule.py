"""How the rate falls where it does not stay: along a cosine or a line, again and longer if need be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from recollect.training.control import Limits

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

    def over(self, steps: int) -> bool:
        return self.length is not None and steps >= self.begin + self.length

    def again(self, steps: int) -> Fall:
        """The next one, twice as long, when this one did not get there."""
        return replace(self, length=self.length and 2 * self.length, begin=steps)
