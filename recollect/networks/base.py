"""What every network of recollect is: built from its settings, and able to say what it is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import nn

from recollect.errors import InputError, check_seed

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "lrelu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "softplus": nn.Softplus,
}
PYTORCH_GAIN = 1 / math.sqrt(6)  # of PyTorch's default initialisation, relative to He's
SHRINK = 1e-4  # how much a signal shrinks from input to output at the start of training
INITIALISATIONS = ("small", "pytorch")  # He's scale lowered, and what PyTorch's layers draw by themselves


class PaperSettings(NamedTuple):
    """The gamma and the start of the blind method that the paper used for a network."""

    gamma: float
    start: str  # the name of a function of recollect.degradation: half_kept or all_erased


class Network(nn.Module):
    """An autoencoder that `recollect train` builds and that a checkpoint stores.

    `settings` holds the arguments of the constructor as JSON values, so that `type(network)(**network.settings)`
    is the same network. A checkpoint names the class by `__name__` and stores these settings.

    Attributes:
        name: The name on the command line.
        summary: One line for help.
        settings: The arguments of the constructor.

    Examples:
        >>> from recollect.networks import NETWORKS
        >>> NETWORKS["fc"].for_images((3, 8, 8), width=16).settings["shape"]
        [3, 8, 8]
    """

    name: ClassVar[str] = ""  # on the command line
    summary: ClassVar[str] = ""  # one line for help
    order: ClassVar[int] = 100  # position in help
    takes_pixels: ClassVar[bool] = True  # values in [0, 1], with no need to state it
    settings: dict[str, Any]

    @classmethod
    def settings_for(cls, shape: Sequence[int]) -> dict[str, Any]:
        """Return the settings that follow from the shape of the images, C x H x W."""
        return {"shape": list(shape)}

    @classmethod
    def for_images(cls, shape: Sequence[int], **chosen: Any) -> Self:
        """Build the network for images of a shape; settings that are not chosen keep their defaults."""
        known = list(inspect.signature(cls).parameters)
        for setting in chosen:
            if setting not in known:
                raise InputError(f"The network {cls.name} has no setting {setting!r}; it has {', '.join(known)}.")
        return cls(**{**cls.settings_for(shape), **chosen})

    def describe(self) -> dict[str, Any]:
        """Return what a checkpoint stores to build the network again: its class and its settings."""
        return {"class": type(self).__name__, **self.settings}

    @classmethod
    def paper_settings_of(cls, settings: Mapping[str, Any], noise_std: float = 0.0) -> PaperSettings | None:  # noqa: ARG003
        """Return the paper's settings for a network built from these settings; None where the paper has none."""
        return None

    def paper_settings(self, noise_std: float = 0.0) -> PaperSettings | None:
        """Return the paper's settings for this network; None where the paper has none."""
        return self.paper_settings_of(getattr(self, "settings", {}), noise_std)


def make_activation(name: str) -> nn.Module:
    """Make a new activation; each PReLU has a parameter of its own."""
    if name not in ACTIVATIONS:
        raise InputError(f"There is no activation {name!r}; choose from {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


def first_weights(network: nn.Module, seed: int, initialisation: str) -> None:
    """Draw the first weights as a network's setting names."""
    if initialisation not in INITIALISATIONS:
        raise InputError(f"There is no initialisation {initialisation!r}; choose from {', '.join(INITIALISATIONS)}.")
    if initialisation == "small":
        initialise(network, seed)
    else:
        initialise_as_pytorch(network, seed)


def initialise_as_pytorch(network: nn.Module, seed: int) -> None:
    """Draw all weights anew as the layers of PyTorch do; nobody else's draws change."""
    check_seed(seed)
    layers = [m for m in network.modules() if isinstance(m, (nn.Linear, nn.Conv2d, nn.PReLU))]
    if any(layer.weight.is_meta for layer in layers):
        return
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for layer in layers:
            layer.reset_parameters()


def initialise(network: nn.Module, seed: int, shrink: float = SHRINK) -> None:
    """Draw all weights anew: He's scale, lowered so that a signal shrinks by `shrink` over all layers.

    Small initial weights make networks that memorize. PyTorch's default lowers each layer alike. It suits shallow
    networks and is the lowest scale used here, but after twenty layers it would leave nothing of the signal.
    """
    check_seed(seed)
    layers = [m for m in network.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    if any(layer.weight.is_meta for layer in layers):
        return  # an outline, which has shapes alone
    generator = torch.Generator().manual_seed(seed)
    for layer in layers:
        fan_in = layer.weight[0].numel()
        deviation = math.sqrt(2 / fan_in) * max(shrink ** (1 / len(layers)), PYTORCH_GAIN)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * deviation)
            if layer.bias is not None:
                layer.bias.zero_()
    for module in network.modules():
        if isinstance(module, nn.PReLU):
            nn.init.constant_(module.weight, 0.25)
