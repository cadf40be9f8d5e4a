"""What the denoising networks share: settings from which they are built again, and how they are told the noise."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from recollect.errors import InputError, is_whole
from recollect.registry import Registry

Shape = tuple[int, int, int]
LARGEST = 8192  # channels or values a side that a file may ask for


class DenoisingNetwork(nn.Module):
    """F(x, time) -> an image; a subclass is named, and `settings` builds the same network again."""

    name: ClassVar[str] = ""  # on the command line
    summary: ClassVar[str] = ""  # one line for help
    order: ClassVar[int] = 100  # position in help

    def __init__(self, shape: Shape, **settings: Any) -> None:
        super().__init__()
        self.shape = shape
        self.settings = {"shape": shape, **settings}


DENOISING_NETWORKS: Registry[type[DenoisingNetwork]] = Registry(
    "denoising network", "recollect.diffusion.networks", DenoisingNetwork
)


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


def check_settings(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse a network that is not known, and settings that it does not have."""
    own = [setting for setting in signature(DENOISING_NETWORKS[name]).parameters if setting != "shape"]
    for setting, value in settings.items():
        if setting not in own:
            raise InputError(f"The network {name} has no {setting}; its settings are {', '.join(own)}.")
        if not _is_small(value):
            raise InputError(f"{setting} is made of whole numbers from 1 to {LARGEST}; got {value!r}.")


def network_for(name: str, shape: Shape, seed: int, **settings: Any) -> DenoisingNetwork:
    """Build a network with first weights of this seed; the caller's random numbers stay as they are."""
    check_settings(name, settings)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return DENOISING_NETWORKS[name](shape, **settings)


def describe(network: DenoisingNetwork) -> str:
    """Return a network's kind and settings as JSON."""
    return json.dumps({"kind": network.name, **network.settings})


def build(description: str) -> DenoisingNetwork:
    """Build the network that JSON describes, without memory for its weights."""
    try:
        settings = {key: _as_tuple(value) for key, value in json.loads(description).items()}
        kind = DENOISING_NETWORKS[settings.pop("kind")]
        if not all(_is_small(value) for value in settings.values()):
            raise ValueError("sizes out of range")
        with torch.device("meta"):
            return kind(**settings)
    except (ValueError, TypeError, KeyError, AttributeError, InputError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"The denoising network that it describes cannot be built: {reason}.") from None


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_small(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return len(values) <= 16 and all(is_whole(number, 1) and number <= LARGEST for number in values)
