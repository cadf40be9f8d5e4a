"""A prior small enough to be trained while one waits."""

import torch

from recollect import Images
from recollect.diffusion import PriorRecipe

TINY = PriorRecipe(widths=(16, 16), batch=4, warm_up=2)


def pictures(count: int = 12, size: int = 8, seed: int = 0, channels: int = 3) -> Images:
    """8-bit images, all unlike each other."""
    values = torch.randint(0, 256, (count, channels, size, size), generator=torch.Generator().manual_seed(seed))
    return Images.from_uint8(values.byte(), name=f"pictures-{seed}")
