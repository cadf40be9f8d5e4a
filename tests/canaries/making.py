"""Small canaries for tests, made of random images."""

from functools import cache

from recollect.canaries import CanarySet, make_canaries
from tests.auditing.making import images


@cache
def small_canaries() -> CanarySet:
    """Twenty canaries of each of two numbers of repeats, 8x8."""
    return make_canaries(images(12, 3), 40, repeats=(1, 2), seed=6)
