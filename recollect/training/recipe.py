"""The settings of a training run, with defaults by kind of network and none by experiment."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, get_args

from torch import nn

from recollect.errors import InputError
from recollect.registry import not_among
from recollect.training.optimizers import newton_schulz_steps_for
from recollect.training.rate_schedule import Shape

OPTIMIZERS = ("adam", "muon")
HIGHEST_ADAM_RATE = 1e-3
ADAM_RATE_TIMES_WIDTH = 0.4
WIDTH_PER_CHANNEL = 2  # a convolutional network counts as this many times as wide as its most channels
AT_LEAST_ONE = {
    "newton_schulz_steps": "Muon takes at least one Newton-Schulz step",
    "average_steps": "The weights are averaged over at least one step",
    "anneal_steps": "The learning rate is annealed over at least one step",
    "batch": "A batch has at least one image",
}


class Defaults(NamedTuple):
    """What suits a kind of network."""

    optimizer: str
    muon_rate: float
    muon_weight_decay: float  # bounds the weights, and with them the Jacobian, so that recovery reaches the images
    batch: int  # for sets of more images than `whole_set`; smaller batches leave noise
    whole_set: int
    anneal_steps: int | None = None
    anneal_shape: Shape = "cosine"
    anneal_power: float = 1.0
    newton_schulz_steps: int | None = None  # at least; None: as many as a matrix needs by its width


CONVOLUTIONAL = Defaults(
    "muon", muon_rate=0.02, muon_weight_decay=0.2, batch=128, whole_set=256, anneal_steps=60_000, anneal_power=2.0
)
FULLY_CONNECTED = Defaults("adam", muon_rate=0.01, muon_weight_decay=0.15, batch=12_500, whole_set=12_500)
MANY_IMAGES = Defaults(  # fully connected, with more images than the width
    "muon", muon_rate=0.03, muon_weight_decay=0.15, batch=12_500, whole_set=12_500, anneal_steps=900,
    anneal_shape="linear", newton_schulz_steps=7,
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run; checkpoints hold all of them.

    Args:
        optimizer: `adam` or `muon`.
        rate: Learning rate, at its peak.
        betas: Of Adam.
        weight_decay: Decoupled: each step takes this share times the rate off every weight matrix.
        newton_schulz_steps: Of Muon. Defaults to a number by the width of a matrix.
        average_steps: Steps over which the weights are averaged; None: never.
        batch: Images per step; None: all.
        anneal_steps: Steps along which the rate is annealed; None: constant, and cut on plateaus.
        anneal_shape: `cosine` or `linear`.
        anneal_power: Power of the cosine or line; above 1 more steps run at low rates.
        tf32_until: On a GPU, the forward pass runs in TF32 above this loss, and the backward pass always; None: no
            pass does.
        interventions: Whether the trainer reacts to collapses, spikes and plateaus of the loss.
        solve_below: Below this loss a linear last layer is solved by least squares; None: never.
        input_noise: Standard deviation of noise on the images that the network is given.
        shift: Pixels by which images are shifted at random, and mirrored or not; 0: neither.
        clip: DP-SGD: the norm to which the gradient of each image is clipped; None: never.
        noise_multiplier: DP-SGD: deviation of the noise on the sum of gradients, as a multiple of `clip`.
        seed: Seed of batches and noise.

    Examples:
        >>> import recollect
        >>> from recollect.training import Recipe
        >>> Recipe.for_network(recollect.FullyConnected((3, 8, 8)), images=600).optimizer
        'adam'
    """

    optimizer: str = "adam"  # or "muon"
    rate: float = 1e-3  # learning rate, at its peak
    betas: tuple[float, float] = (0.9, 0.99)  # with beta2 = 0.999 the loss spikes once gradients are tiny
    weight_decay: float = 0.0  # decoupled: each step takes this share times the rate off every weight matrix
    newton_schulz_steps: int | None = None  # of Muon; None: by the width of a matrix
    average_steps: int | None = 100  # that the weights are averaged over at first (`average_horizon`); None: never
    batch: int | None = None  # None: all images at every step
    anneal_steps: int | None = None  # None: the rate is constant, and cut on plateaus
    anneal_shape: Shape = "cosine"  # or "linear"
    anneal_power: float = 1.0  # of the cosine or line; above 1 more steps run at low rates
    tf32_until: float | None = 3e-5  # on a GPU: above this loss the forward pass is in TF32; None: nothing ever is
    interventions: bool = True  # on a loss curve that goes wrong: cut the rate, go back, or start from other weights
    solve_below: float | None = None  # below this loss a linear last layer is solved by least squares; None: never
    input_noise: float = 0.0  # standard deviation of noise on the images that the network is given
    shift: int = 0  # pixels by which images are shifted at random, and mirrored or not; 0: neither
    clip: float | None = None  # DP-SGD: the norm to which the gradient of each image is clipped; None: never
    noise_multiplier: float = 0.0  # and the deviation of the noise on their sum, as a multiple of it
    seed: int = 42

    @classmethod
    def for_network(cls, network: nn.Module, images: int = 1, optimizer: str | None = None, seed: int = 42) -> Recipe:
        """Return the defaults for a kind of network and a number of images.

        Convolutional networks and sets of more images than the width get Muon with an annealed rate. Other networks
        get Adam at a rate that is lower the wider they are. Only sets too large for one step are split into batches.
        """
        width = _width(network)
        defaults = _defaults_for(network, images, width)
        optimizer = optimizer or defaults.optimizer
        settings: dict[str, Any] = {"rate": min(HIGHEST_ADAM_RATE, ADAM_RATE_TIMES_WIDTH / width)}
        if optimizer == "muon":
            settings = {"rate": defaults.muon_rate, "weight_decay": defaults.muon_weight_decay}
            if defaults.newton_schulz_steps:
                needed = newton_schulz_steps_for(width)
                settings["newton_schulz_steps"] = max(defaults.newton_schulz_steps, needed)
        if images > defaults.whole_set:
            settings["batch"] = defaults.batch
        return cls(
            optimizer, anneal_steps=defaults.anneal_steps, anneal_shape=defaults.anneal_shape,
            anneal_power=defaults.anneal_power, seed=seed, **settings,
        )  # fmt: skip

    @classmethod
    def plain(cls, images: int = 1, seed: int = 42) -> Recipe:
        """Return Adam as PyTorch has it, with a constant rate, in float32 and with nothing else.

        A comparison with it shows what `for_network` adds. Large sets are split into batches in both.
        """
        batch = CONVOLUTIONAL.batch if images > CONVOLUTIONAL.whole_set else None
        return cls(
            "adam", rate=1e-3, betas=(0.9, 0.999), average_steps=None, batch=batch, tf32_until=None,
            interventions=False, seed=seed,
        )  # fmt: skip

    def __post_init__(self) -> None:
        self._check_optimizer()
        self._check_noise()
        if self.anneal_shape not in get_args(Shape):
            raise InputError(f"The rate is annealed along a cosine or linear curve, got {self.anneal_shape!r}.")
        if not 0 < self.anneal_power < math.inf:
            raise InputError(f"The power of the annealing must be positive, got {self.anneal_power}.")
        for name, rule in AT_LEAST_ONE.items():
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{rule}, got {value}.")

    def _check_noise(self) -> None:
        if not 0 <= self.input_noise < math.inf or self.shift < 0:
            raise InputError(f"Noise and shift are zero or more, got {self.input_noise} and {self.shift}.")
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise InputError(f"Gradients are clipped to a norm above 0, got {self.clip}.")
        if not 0 <= self.noise_multiplier < math.inf or (self.noise_multiplier and self.clip is None):
            raise InputError(f"A noise multiplier is zero or more and needs a clip, got {self.noise_multiplier}.")

    def _check_optimizer(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise not_among("optimizer", self.optimizer, OPTIMIZERS)
        if not 0 < self.rate < math.inf:
            raise InputError(f"The learning rate must be positive, got {self.rate}.")
        if not 0 <= self.weight_decay * self.rate < 1:
            raise InputError(f"The weight decay must be zero or more and below 1 / rate, got {self.weight_decay}.")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"Adam's betas are two numbers from 0 to below 1, got {self.betas}.")

    def record(self) -> dict[str, Any]:
        """Return all settings by name."""
        return asdict(self)


def _width(network: nn.Module) -> int:
    """Return the width that learning rates go by: of the narrowest hidden layer, or by the most channels."""
    channels = [m.out_channels for m in network.modules() if isinstance(m, nn.Conv2d)]
    if channels:
        return WIDTH_PER_CHANNEL * max(channels)
    hidden = [m.out_features for m in network.modules() if isinstance(m, nn.Linear)][:-1]
    return min(hidden, default=1024)


def _defaults_for(network: nn.Module, images: int, width: int) -> Defaults:
    if any(isinstance(m, nn.Conv2d) for m in network.modules()):
        return CONVOLUTIONAL
    return MANY_IMAGES if images > width else FULLY_CONNECTED
