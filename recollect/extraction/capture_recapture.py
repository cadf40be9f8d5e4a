"""How many images a model stores, from how often each was generated: a bound from below (Chao 1987)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Z = 1.959963984540054  # a bound on one side at 97.5%: for few images the 95% of the formula are not reached


@dataclass(frozen=True)
class StoredImages:
    """The images seen, an estimate of how many there are, and how many there are at least, with 95% confidence.

    There is no bound from above: an image that no start leads to leaves no trace.
    """

    seen: int
    estimate: float
    at_least: int


def stored_images(captures: np.ndarray) -> StoredImages:
    """Estimate from how often each training image was captured; many captured once mean that more are unseen."""
    most = len(captures)
    captures = np.asarray(captures)[np.asarray(captures) > 0]
    seen = len(captures)
    if not seen:
        return StoredImages(0, 0.0, 0)
    unseen, variance = estimate_unseen(captures)
    if unseen <= 0:
        return StoredImages(seen, float(seen), seen)
    spread = math.exp(Z * math.sqrt(math.log(1 + variance / unseen**2)))
    return StoredImages(seen, min(most, seen + unseen), min(most, seen + math.floor(unseen / spread)))


def estimate_unseen(captures: np.ndarray) -> tuple[float, float]:
    """Compute Chao's estimate of the images not seen, and its variance; corrected where none was seen twice.

    `captures` are above zero. The estimate is exact where all images are captured alike, and too low otherwise.
    """
    seen, draws = len(captures), int(captures.sum())
    once, twice = int((captures == 1).sum()), int((captures == 2).sum())
    part = (draws - 1) / draws
    if twice:
        ratio = once / twice
        variance = twice * (part / 2 * ratio**2 + part**2 * ratio**3 + part**2 / 4 * ratio**4)
        return part * once**2 / (2 * twice), variance
    unseen = part * once * (once - 1) / 2
    variance = unseen + part**2 * once * (2 * once - 1) ** 2 / 4 - part**2 * once**4 / (4 * (seen + unseen))
    return unseen, max(variance, unseen)
