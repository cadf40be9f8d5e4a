"""Canaries: images that a fair coin puts into a training set or leaves out, so that an audit knows the truth."""

from recollect.canaries.canary_folder import open_canaries, write_canaries
from recollect.canaries.canary_set import CanarySet
from recollect.canaries.design import Design
from recollect.canaries.make import make_canaries

__all__ = ["CanarySet", "Design", "make_canaries", "open_canaries", "write_canaries"]
