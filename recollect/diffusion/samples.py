"""A page of samples, to look at: does the prior know what images look like?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from recollect.degradation import all_erased
from recollect.diffusion.prior import Prior
from recollect.methods import DDNM
from recollect.records import atomically


def draw_samples(prior: Prior, count: int, steps: int = 100) -> Tensor:
    """Images in [0, 1] from nothing: DDNM with every pixel erased, and no fresh noise, which would blur them."""
    numbers = torch.linspace(0, 1, count).view(-1, 1, 1, 1)  # erased like all else, they only give each its own draw
    y = numbers.expand(count, *prior.shape).contiguous()
    found = DDNM(prior, steps=steps, eta=0.0)(None, y, all_erased(y))
    return found.estimate.clamp(0, 1)


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
