"""Random shifts and mirror images: what keeps a network from seeing the same pixels at every step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def shifted(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Shift each image by up to `most` pixels in both directions, and mirror every second one on average.

    Pixels that enter at an edge are those at the edge, mirrored.
    """
    count, _, height, width = images.shape

    def draw(low: int, high: int) -> Tensor:
        return torch.randint(low, high, (count, 1), generator=generator, device=images.device)

    rows = torch.arange(height, device=images.device) + draw(0, 2 * most + 1)
    columns = torch.arange(width, device=images.device) + draw(0, 2 * most + 1)
    columns = torch.where(draw(0, 2) == 1, columns.flip(1), columns)
    padded = pad(images, (most,) * 4, mode="reflect")
    each = torch.arange(count, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
