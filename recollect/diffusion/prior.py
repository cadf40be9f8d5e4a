"""A diffusion model as recollect uses it: the noise that it sees in an image, its schedule, and what it was taught."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from recollect.diffusion.card import Card
from recollect.errors import InputError

PREDICTIONS = ("epsilon", "v_prediction", "sample")  # what a network may give back, in diffusers' words


class Prior(nn.Module):
    """e(x, t): the noise in images x, whose clean values lie in [-1, 1], at time step t."""

    def __init__(self, network: Any, scheduler: Any, name: str, card: Card | None = None) -> None:
        super().__init__()
        self.network, self.name, self.card = network, name, card
        self.shape = _image_shape(network.config, name)
        self.prediction = scheduler.config.get("prediction_type", "epsilon")
        if self.prediction not in PREDICTIONS:
            raise InputError(f"The prior {name} predicts {self.prediction!r}; known are {', '.join(PREDICTIONS)}.")
        self.alphas_cumprod = scheduler.alphas_cumprod.double().cpu()  # no buffer: read on the CPU, one at a time

    def forward(self, x: Tensor, t: int) -> Tensor:
        out = self.network(x, t, return_dict=False)[0]
        a = float(self.alphas_cumprod[t])
        if self.prediction == "v_prediction":
            return a**0.5 * out + (1 - a) ** 0.5 * x
        if self.prediction == "sample":
            return (x - a**0.5 * out) / (1 - a) ** 0.5
        return out

    @cached_property
    def weights_hash(self) -> str:
        digest = hashlib.sha256()
        for name, weights in self.network.state_dict().items():
            digest.update(name.encode() + weights.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def __str__(self) -> str:
        """As it stands in a record's settings: one text for each set of weights."""
        return f"{self.name}, weights {self.weights_hash}"


def _image_shape(config: Any, name: str) -> tuple[int, int, int]:
    """Channels, height and width of the images that an unconditional network was trained on."""
    size, channels = config.get("sample_size"), config.get("in_channels")
    if size is None or channels is None:
        raise InputError(f"The prior {name} does not say the size of its images (sample_size, in_channels).")
    if config.get("class_embed_type") or config.get("num_class_embeds"):
        raise InputError(f"The prior {name} wants a class for each image; only unconditional ones can be used.")
    if config.get("out_channels") != channels:
        raise InputError(f"The prior {name} takes {channels} channels and gives {config.get('out_channels')}.")
    height, width = (size, size) if isinstance(size, int) else size
    return int(channels), int(height), int(width)


def v_target(images: Tensor, noise: Tensor, a: Tensor) -> Tensor:
    """What a v-predicting network is taught: the noise first, the image as noise takes over (Salimans & Ho 2022)."""
    return torch.sqrt(a) * noise - torch.sqrt(1 - a) * images
