"""A U-Net with skips by concatenation and attention where images are small (after Karras et al. 2022)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect.diffusion.networks.base import DenoisingNetwork, NoiseEmbedding, Shape
from recollect.errors import InputError

GROUP = 16  # channels that are normalized together
ATTENDED = 16  # the largest side with attention


class UNet(DenoisingNetwork):
    """Halve the image once for each further width, with two blocks a level down and up: 19 million parameters."""

    name: ClassVar[str] = "unet"
    summary: ClassVar[str] = "convolutions and attention; best on a GPU"
    order: ClassVar[int] = 1

    def __init__(self, shape: Shape, widths: tuple[int, ...] = (128, 256, 256)) -> None:
        super().__init__(shape, widths=widths)
        channels, height, width = shape
        check_widths(widths, height, width)
        attends = [level > 0 and max(height, width) >> level <= ATTENDED for level in range(len(widths))]
        self.embedding = NoiseEmbedding(2 * widths[0])
        self.first = convolution(channels, widths[0])
        self.halve, self.enlarge = nn.ModuleList(), nn.ModuleList()
        self.down_first, self.down_second = nn.ModuleList(), nn.ModuleList()  # blocks of each level
        self.up_first, self.up_second = nn.ModuleList(), nn.ModuleList()
        for level, (before, own) in enumerate(zip((widths[0], *widths), widths, strict=False)):
            self.halve.append(convolution(before, before, stride=2) if level else nn.Identity())
            self.down_first.append(self._block(before, own))
            self.down_second.append(self._block(own, own, attends[level]))
            self.up_first.append(self._block(2 * own, own, attends[level]))
            self.up_second.append(self._block(2 * own, own))
            self.enlarge.append(convolution(own, before) if level else nn.Identity())
        self.middle = self._block(widths[-1], widths[-1], True)
        self.last_norm = nn.GroupNorm(widths[0] // GROUP, widths[0])
        self.last = convolution(widths[0], channels, gain=0.0)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        noise, skips = self.embedding(time), []
        h = self.first(x.contiguous(memory_format=torch.channels_last))
        for halve, first, second in zip(self.halve, self.down_first, self.down_second, strict=True):
            h = first(halve(h), noise)
            skips.append(h)
            h = second(h, noise)
            skips.append(h)
        h = self.middle(h, noise)
        for level in reversed(range(len(self.enlarge))):
            for blocks in (self.up_first, self.up_second):
                h = blocks[level](torch.cat([h, skips.pop()], 1), noise)
            if level:
                h = self.enlarge[level](functional.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.last(functional.silu(self.last_norm(h))).contiguous()

    def _block(self, inputs: int, outputs: int, attends: bool = False) -> Block:
        return Block(inputs, outputs, 2 * self.settings["widths"][0], attends)


def check_widths(widths: tuple[int, ...], height: int, width: int) -> None:
    """Refuse widths that cannot be normalized in groups, or that halve images too often."""
    if len(widths) < 1 or any(w % GROUP for w in widths):
        raise InputError(f"The widths of a U-Net are multiples of {GROUP}, got {widths}.")
    factor = 2 ** (len(widths) - 1)
    if height % factor or width % factor:
        raise InputError(
            f"The images are {width}x{height}; with {len(widths)} widths their sides must be divisible by {factor}."
        )


class Block(nn.Module):
    """Two convolutions beside a skip; the noise level scales and shifts between them."""

    def __init__(self, inputs: int, outputs: int, embedding: int, attends: bool) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(inputs // GROUP, inputs), convolution(inputs, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(outputs // GROUP, outputs), convolution(outputs, outputs, gain=0.0)
        self.modulate = zeroed(nn.Linear(embedding, 2 * outputs))
        self.skip = convolution(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.attention = Attention(outputs) if attends else nn.Identity()

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        scale, shift = self.modulate(noise)[:, :, None, None].chunk(2, 1)
        h = self.conv1(functional.silu(self.norm1(x)))
        h = self.conv2(functional.silu(self.norm2(h) * (1 + scale) + shift))
        return self.attention(self.skip(x) + h)


class Attention(nn.Module):
    """Every pixel attends to every other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.heads = max(1, channels // 64)
        self.norm = nn.GroupNorm(channels // GROUP, channels)
        self.projections, self.out = nn.Linear(channels, 3 * channels), zeroed(nn.Linear(channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        count, channels, height, width = x.shape
        tokens = self.norm(x).permute(0, 2, 3, 1).reshape(count, height * width, channels)
        parts = self.projections(tokens).view(count, height * width, 3, self.heads, channels // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        return x + self.out(mixed.reshape(count, height, width, channels)).permute(0, 3, 1, 2)


def convolution(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, gain: float = 1.0) -> nn.Conv2d:
    """Build a convolution whose first weights keep the variance, times `gain`."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)
    nn.init.normal_(layer.weight, std=gain / math.sqrt(inputs * kernel * kernel))
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def zeroed(layer: nn.Linear) -> nn.Linear:
    """Start a layer at zero: its branch then starts as nothing."""
    for values in layer.parameters():
        nn.init.zeros_(values)
    return layer
