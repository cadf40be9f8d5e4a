"""How images are degraded, and what a solver may know about it."""

from recollect.degradation.base import Degradation
from recollect.degradation.erasure import Erasure, all_erased, half_kept
from recollect.degradation.masks import SIX, mask, random_mask
from recollect.degradation.observe import Observation, observe

__all__ = [
    "SIX",
    "Degradation",
    "Erasure",
    "Observation",
    "all_erased",
    "half_kept",
    "mask",
    "observe",
    "random_mask",
]
