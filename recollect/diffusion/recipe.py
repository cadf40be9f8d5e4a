"""How a denoiser is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from recollect.diffusion.networks import DenoisingNetwork, check_settings, network_for
from recollect.diffusion.preconditioning import HIGHEST, LOWEST
from recollect.errors import InputError, check_seed, is_number, is_whole


def _edm_levels(shares: Tensor) -> Tensor:
    """Take quantiles of noise levels whose logarithm is normal (Karras et al. 2022)."""
    return (1.2 * torch.special.ndtri(shares.clamp(1e-5, 1 - 1e-5)) - 1.2).exp()


def _cosine_levels(shares: Tensor) -> Tensor:
    """Take the noise levels of the cosine schedule at these shares of its time (Nichol & Dhariwal 2021)."""
    return torch.tan(shares * (math.pi / 2)).clamp(LOWEST, HIGHEST)


# Noise levels at shares from 0 to 1 of all that are drawn.
SCHEDULES: Mapping[str, Callable[[Tensor], Tensor]] = {"edm": _edm_levels, "cosine": _cosine_levels}


@dataclass(frozen=True)
class DenoiserRecipe:
    """Network, noise levels and steps; the defaults are for images of 32x32 and less.

    Args:
        network: `unet`, or `residual`: fully connected.
        settings: Settings of the network.
        schedule: Distribution of noise levels in training: `edm` or `cosine`.
        rate: Learning rate of Adam: constant for half of the training, then down to zero along a cosine.
        batch: Images per step.
        warm_up: Steps in which the rate rises.
        flip: Whether half of the images are mirrored at random.
        seed: Seed of weights, batches and noise.

    Examples:
        >>> from recollect.diffusion import DenoiserRecipe
        >>> DenoiserRecipe(schedule="cosine").batch
        256
    """

    network: str = "unet"
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the network
    schedule: str = "edm"  # which noise levels are seen how often
    rate: float = 1e-3  # of Adam; constant for half of the training, then down to zero along a cosine
    batch: int = 256
    warm_up: int = 50  # steps in which the rate rises
    flip: bool = False  # images are as often seen mirrored
    seed: int = 42

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise InputError(f"There is no schedule {self.schedule!r}; choose from {', '.join(SCHEDULES)}.")
        check_settings(self.network, self.settings)
        if not is_number(self.rate) or not 0 < self.rate < math.inf:
            raise InputError(f"The learning rate is a positive number, got {self.rate!r}.")
        if not is_whole(self.batch, 1) or not is_whole(self.warm_up):
            raise InputError(f"batch and warm_up are whole numbers, got {self.batch!r} and {self.warm_up!r}.")
        check_seed(self.seed)

    @classmethod
    def for_size(cls, side: int, device: torch.device | str, **settings: Any) -> DenoiserRecipe:
        """Choose by the size of the images: larger ones are halved once more, and a batch has as many pixels.

        On a CPU network and batches are small: a step of the large network would take minutes.
        """
        chosen: dict[str, Any] = {}
        if torch.device(device).type == "cpu":
            chosen = {"settings": {"widths": (32, 64, 64)}, "batch": 16, "rate": 3e-4}
        elif side > 32 and side % 8 == 0:
            chosen = {"settings": {"widths": (96, 192, 256, 256)}, "batch": 64}
        if settings.get("network", cls.network) != cls.network:
            chosen.pop("settings", None)
        return cls(**{**chosen, **settings})

    def make_network(self, shape: tuple[int, int, int]) -> DenoisingNetwork:
        return network_for(self.network, shape, self.seed, **self.settings)

    def rate_at(self, step: int, part_done: float) -> float:
        """Compute the learning rate of a step, counted from 1, when this part of the training is over."""
        rising = min(1.0, step / max(1, self.warm_up))
        falling = min(1.0, max(0.0, 2 * part_done - 1))
        return self.rate * rising * 0.5 * (1 + math.cos(math.pi * falling))
