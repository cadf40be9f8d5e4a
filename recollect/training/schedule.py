"""How the rate falls where a last layer cannot be solved exactly: along a cosine, again and longer if need be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recollect.training.control import Limits

FLOOR = 1e-3  # share of the rate that is left at the end of a fall


@dataclass(frozen=True)
class Fall:
    """One fall of the rate, over `length` steps from step `begin` on; without a length the rate stays."""

    length: int | None
    begin: int = 0

    def share(self, steps: int, seconds: float, limits: Limits) -> float:
        """What is left of the rate here. A limit that comes before the end of the fall hastens it: the last decades
        of a loss come while the rate falls."""
        if self.length is None:
            return 1.0
        gone = max((steps - self.begin) / self.length, limits.used(seconds, steps))
        return max(FLOOR, 0.5 * (1 + math.cos(math.pi * min(1.0, gone))))

    def over(self, steps: int) -> bool:
        return self.length is not None and steps >= self.begin + self.length

    def again(self, steps: int) -> Fall:
        """The next one, twice as long, when this one did not get there."""
        return Fall(self.length and 2 * self.length, steps)
