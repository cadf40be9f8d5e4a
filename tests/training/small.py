"""A training problem of a second: twenty images of 8x8, a network of width 64."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images
from recollect.training import Recipe, Training, train_to_loss

RECIPE = Recipe(rate=2e-3)


def small_images(count: int = 20, seed: int = 0) -> Images:
    return Images(torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed)))


def small_network(seed: int = 42, **settings: Any) -> FullyConnected:
    """Starts from a quarter of its usual weights, so that training lasts long enough to be stopped and disturbed."""
    network = FullyConnected((1, 8, 8), **{"layers": 4, "width": 64, "seed": seed, **settings})
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(0.245)
    return network


def train(folder: Path | None = None, **options: Any) -> Training:
    given: dict[str, Any] = {"images": small_images(), "recipe": RECIPE, "device": "cpu", "out": folder, **options}
    return train_to_loss(given.pop("network", None) or small_network(), **given)


def vector(network: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def loss_of(network: nn.Module, images: Images) -> float:
    """The loss once more, in float64: no code shared with the trainer."""
    x = images.pixels
    with torch.no_grad():
        return float((network(x).double() - x.double()).square().mean())
