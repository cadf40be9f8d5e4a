"""Pillow's images as arrays of 8-bit values."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.errors import InputError


def pil_values(image: Any) -> np.ndarray:
    """Read the 8-bit values of a PIL image, H x W (grey) or H x W x 3; refuse what cannot be read exactly."""
    if image.mode[0] in "IF":
        raise InputError(f"An image of mode {image.mode} has more than 8 bits a value; convert it to 8 bits first.")
    if image.mode == "LAB":
        raise InputError("An image of mode LAB has no colours that Pillow can tell; convert it to RGB first.")
    if image.mode in ("La", "RGBa"):  # colours multiplied by alpha: undone by the form that keeps them apart
        image = image.convert(image.mode[:-1] + "A")
    if "A" in image.getbands() or "transparency" in image.info:
        with_alpha = image if "A" in image.getbands() else image.convert("RGBA")
        if with_alpha.getchannel("A").getextrema()[0] < 255:
            raise InputError("An image is partly transparent, so its colours are undefined; flatten it first.")
    mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
    return np.asarray(image if image.mode == mode else image.convert(mode))  # converting would copy a large image
