"""Images, and how files, arrays and objects of other libraries become images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.images.image_set import KINDS, Images, as_float32, check_8_bit, check_alike

__getattr__ = lazy_names(__name__, {"image_set": ["KINDS", "Images", "as_float32", "check_8_bit", "check_alike"]})

__all__ = ["KINDS", "Images", "as_float32", "check_8_bit", "check_alike"]
