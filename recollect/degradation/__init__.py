"""How images are damaged, and what a solver may know about it."""

from recollect.degradation.any_fill import (
    AnyFill,
    certain_ones_kept,
    near_ones_kept,
    odd_ones_kept,
    smooth_ones_kept,
)
from recollect.degradation.base import Degradation, Start
from recollect.degradation.blur import Blur
from recollect.degradation.coarse import Coarse
from recollect.degradation.erasure import Erasure, all_erased, half_kept
from recollect.degradation.fills import FILLS, Fill, Filled, fill_erased
from recollect.degradation.masks import PAPER_MASKS, NamedMask, mask, random_mask
from recollect.degradation.named import DEGRADATIONS, degradation
from recollect.degradation.observe import Observation, observe

__all__ = [
    "DEGRADATIONS",
    "FILLS",
    "PAPER_MASKS",
    "AnyFill",
    "Blur",
    "Coarse",
    "Degradation",
    "Erasure",
    "Fill",
    "Filled",
    "NamedMask",
    "Observation",
    "Start",
    "all_erased",
    "certain_ones_kept",
    "degradation",
    "fill_erased",
    "half_kept",
    "mask",
    "near_ones_kept",
    "observe",
    "odd_ones_kept",
    "random_mask",
    "smooth_ones_kept",
]
