"""A fully connected denoiser of small images, which trains in a minute on a CPU."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from recollect.diffusion.networks.base import DenoisingNetwork, NoiseEmbedding, Shape


class Residual(DenoisingNetwork):
    """All pixels in one vector of `width` values, changed by `blocks` residual blocks."""

    name: ClassVar[str] = "residual"
    summary: ClassVar[str] = "fully connected; small images train in a minute on a CPU"
    order: ClassVar[int] = 2

    def __init__(self, shape: Shape, width: int = 768, blocks: int = 4) -> None:
        super().__init__(shape, width=width, blocks=blocks)
        channels, height, image_width = shape
        values = channels * height * image_width
        self.embedding = NoiseEmbedding(128)
        self.first, self.last = nn.Linear(values, width), nn.Linear(width, values)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        noise = self.embedding(time)
        h = self.first(x.flatten(1))
        for block in self.blocks:
            h = h + block(h, noise)
        return self.last(h).view_as(x)


class Block(nn.Module):
    """Two layers; the noise level scales and shifts their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(128, 2 * width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h: Tensor, noise: Tensor) -> Tensor:
        scale, shift = self.modulate(noise).chunk(2, 1)
        return self.layers(self.norm(h) * (1 + scale) + shift)
