"""U-Net autoencoders, with and without skip connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, max_pool2d

from recollect.errors import InputError, is_whole
from recollect.networks.base import Network, PaperSettings, first_weights, make_activation


class UNet(Network):
    """3x3 convolutions in stages, an activation after each, max-pooled between and mirrored.

    Without skip connections everything passes the latent. With them details can pass beside it.

    Args:
        channels: Channels of the images.
        widths: Channels of each stage; every stage but the first halves the sides.
        activation: `lrelu`, `prelu` or `softplus`.
        skip: Whether there are skip connections.
        initialisation: `small`, or `pytorch` for PyTorch's own.
        seed: Seed of the first weights.

    Examples:
        >>> import torch
        >>> from recollect import UNet
        >>> UNet(widths=(4, 8))(torch.zeros(1, 3, 8, 8)).shape
        torch.Size([1, 3, 8, 8])
    """

    name: ClassVar[str] = "unet"
    summary: ClassVar[str] = "convolutions, all through the latent; sides in eights"
    order: ClassVar[int] = 20

    def __init__(
        self,
        *,
        channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        activation: str = "lrelu",
        skip: bool = False,
        initialisation: str = "small",
        seed: int = 42,
    ) -> None:
        super().__init__()
        if not isinstance(widths, Sequence):
            raise InputError(f"A U-Net has several widths, such as (64, 128, 256, 512); got {widths!r}.")
        if not widths or not all(is_whole(width, 1) for width in (channels, *widths)):
            raise InputError(f"A U-Net has channels and widths of 1 or more, got {channels!r} and {tuple(widths)}.")
        self.settings: dict[str, Any] = {
            "channels": channels, "widths": list(widths), "activation": activation, "skip": skip, "seed": seed,
        }  # fmt: skip
        if initialisation != "small":
            self.settings["initialisation"] = initialisation
        self.skip = skip
        self.down = nn.ModuleList(_stage([a, b, b], activation) for a, b in pairwise((channels, *widths)))
        self.up = nn.ModuleList()
        for coarse, fine in pairwise(reversed(widths)):
            joined = coarse + fine if skip else coarse
            self.up.append(_stage([joined, fine, fine], activation))
        self.out = _stage([widths[0], channels], activation)
        first_weights(self, seed, initialisation)

    @classmethod
    def settings_for(cls, shape: Sequence[int]) -> dict[str, Any]:
        if len(shape) != 3:
            raise InputError(f"A U-Net takes images, C x H x W; these have the shape {'x'.join(map(str, shape))}.")
        return {"channels": shape[0]}

    def forward(self, x: Tensor) -> Tensor:
        multiple = 2 ** len(self.up)
        if x.shape[-1] % multiple or x.shape[-2] % multiple:
            size = f"{x.shape[-2]}x{x.shape[-1]}"
            raise InputError(f"This U-Net needs sides that are multiples of {multiple}; the images are {size}.")
        stages: list[Tensor] = []
        for depth, stage in enumerate(self.down):
            if depth > 0:
                x = max_pool2d(x, 2)
            x = stage(x)
            stages.append(x)
        for stage, same_size in zip(self.up, reversed(stages[:-1]), strict=True):
            x = interpolate(x, scale_factor=2, mode="nearest")
            if self.skip:
                x = torch.cat([x, same_size], 1)
            x = stage(x)
        return self.out(x)

    @classmethod
    def paper_settings_of(cls, settings: Mapping[str, Any], noise_std: float = 0.0) -> PaperSettings:  # noqa: ARG003
        return PaperSettings(gamma=1.0, start="all_erased")


def _stage(widths: list[int], activation: str) -> nn.Sequential:
    modules: list[nn.Module] = []
    for into, out in pairwise(widths):
        modules += [nn.Conv2d(into, out, 3, padding=1), make_activation(activation)]
    return nn.Sequential(*modules)
