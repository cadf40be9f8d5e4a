"""A training problem of a third of a second: 20 images of 8x8, a network of width 64; and a clock that counts steps."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images
from recollect.training import Recipe, Training, train_to_loss

RECIPE = Recipe(rate=4e-3, solve_below=1e-5)  # ends soon


class Killed(BaseException):
    """Stands for SIGKILL inside one process: no code under test catches it."""


class StepClock:
    """Advances by the same time for every forward pass of a network, however fast the machine is."""

    def __init__(self, network: nn.Module, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        network.register_forward_hook(self._advance)

    def __call__(self) -> float:
        return self.now

    def _advance(self, *_: object) -> None:
        self.now += self.seconds


def small_images(count: int = 20, seed: int = 0) -> Images:
    return Images(torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed)))


def small_network(seed: int = 42, **settings: Any) -> FullyConnected:
    """Starts from half of its usual weights, so that training to 1e-8 lasts seven windows: enough to be disturbed."""
    network = FullyConnected((1, 8, 8), **{"layers": 4, "width": 64, "seed": seed, **settings})
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(0.5)
    return network


def train(folder: Path | None = None, seconds_per_pass: float | None = None, **options: Any) -> Training:
    """Train the small network on the small images; with `seconds_per_pass`, by a clock that counts forward passes."""
    network = options.pop("network", None) or small_network()
    if seconds_per_pass is not None:
        options["clock"] = StepClock(network, seconds_per_pass)
    settings: dict[str, Any] = {"images": small_images(), "recipe": RECIPE, "device": "cpu", "out": folder, **options}
    return train_to_loss(network, **settings)


def after_calls(count: int) -> Callable[[], bool]:
    """Ask a run to stop once it has asked so often: it does before each window."""
    calls = itertools.count(1)
    return lambda: next(calls) > count


def messages(training: Training, words: str) -> list[str]:
    """The lines of the log with this text."""
    return [line for line in training.log if words in line]


def vector(network: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def loss_of(network: nn.Module, images: Images) -> float:
    """The loss once more, in float64: no code shared with the trainer."""
    x = images.pixels
    with torch.no_grad():
        return float((network(x).double() - x.double()).square().mean())


def constant_loss(images: Images) -> float:
    """The loss of the mean image, the best constant output."""
    x = images.pixels.double()
    return float((x - x.mean(0)).square().mean())
