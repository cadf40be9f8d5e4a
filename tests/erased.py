"""The mask of a degradation that erases."""

from torch import Tensor

from recollect import Erasure
from recollect.degradation import Degradation


def keep_of(degradation: Degradation | None) -> Tensor:
    """Which values are kept."""
    assert isinstance(degradation, Erasure)
    return degradation.keep
