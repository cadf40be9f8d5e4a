"""What the denoising networks share: settings from which they are built again, and how they are told the noise."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from recollect.errors import InputError, is_whole

Shape = tuple[int, int, int]
LARGEST = 8192  # channels or values a side that a file may ask for


class DenoisingNetwork(nn.Module):
    """F(x, time) -> an image; a subclass is named, and `settings` builds the same network again."""

    kinds: ClassVar[dict[str, type[DenoisingNetwork]]] = {}
    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.name] = cls

    def __init__(self, shape: Shape, **settings: Any) -> None:
        super().__init__()
        self.shape = shape
        self.settings = {"shape": shape, **settings}


class NoiseEmbedding(nn.Module):
    """The time as a vector: cosines and sines of many frequencies, then two layers."""

    frequencies: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        frequencies = 50 * torch.exp(-math.log(1000) * torch.arange(half) / half)
        self.register_buffer("frequencies", frequencies)
        self.layers = nn.Sequential(nn.Linear(2 * half, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())

    def forward(self, time: Tensor) -> Tensor:
        angles = time[:, None] * self.frequencies
        return self.layers(torch.cat([angles.cos(), angles.sin()], 1))


def network_for(name: str, shape: Shape, seed: int, **settings: Any) -> DenoisingNetwork:
    """Build a network with first weights of this seed; the caller's random numbers stay as they are."""
    if name not in DenoisingNetwork.kinds:
        raise InputError(f"There is no denoising network {name!r}; choose from {', '.join(DenoisingNetwork.kinds)}.")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return DenoisingNetwork.kinds[name](shape, **settings)


def describe(network: DenoisingNetwork) -> str:
    """Return a network's kind and settings as JSON."""
    return json.dumps({"kind": network.name, **network.settings})


def build(description: str) -> DenoisingNetwork:
    """Build the network that JSON describes, without memory for its weights."""
    try:
        settings = {key: _as_tuple(value) for key, value in json.loads(description).items()}
        kind = DenoisingNetwork.kinds[settings.pop("kind")]
        if not all(_is_small(value) for value in settings.values()):
            raise ValueError("sizes out of range")
        with torch.device("meta"):
            return kind(**settings)
    except (ValueError, TypeError, KeyError, AttributeError, InputError) as error:
        raise InputError(f"The denoising network that it describes cannot be built: {error}.") from None


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_small(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return len(values) <= 16 and all(is_whole(number, 1) and number <= LARGEST for number in values)
