"""Canaries: images that a fair coin puts into a training set or leaves out, so that an audit knows the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.canaries.canary_folder import open_canaries, write_canaries
    from recollect.canaries.canary_set import CanarySet
    from recollect.canaries.design import Design
    from recollect.canaries.make import make_canaries

__getattr__ = lazy_names(
    __name__,
    {
        "canary_folder": ["open_canaries", "write_canaries"],
        "canary_set": ["CanarySet"],
        "design": ["Design"],
        "make": ["make_canaries"],
    },
)

__all__ = ["CanarySet", "Design", "make_canaries", "open_canaries", "write_canaries"]
