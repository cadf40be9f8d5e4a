"""A page of samples, to judge by eye what a denoiser has learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from recollect.records import atomically


def write_sheet(path: Path, images: Tensor, columns: int = 8, scale: int = 2) -> None:
    """Images side by side in rows, as one PNG."""
    from PIL import Image

    count, channels, height, width = images.shape
    rows = -(-count // columns)
    page = np.full((channels, rows * (height + 1), columns * (width + 1)), 255, np.uint8)
    for number, values in enumerate((images * 255).round().byte().cpu().numpy()):
        top, left = number // columns * (height + 1), number % columns * (width + 1)
        page[:, top : top + height, left : left + width] = values
    picture = Image.fromarray(page[0] if channels == 1 else page.transpose(1, 2, 0))
    with atomically(path) as file, file.open("wb") as opened:
        picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST).save(opened, "PNG")
