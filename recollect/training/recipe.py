"""How a network is trained: the settings, with defaults by kind of network and none by experiment."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from torch import nn

from recollect.errors import InputError
from recollect.training.optimizers import newton_schulz_steps

LATER = {  # settings that runs from before them do not name
    "decay": 0.0, "straight": False, "fall_power": 1.0, "newton_schulz": None,
}  # fmt: skip
ADAM_RATE_TIMES_WIDTH = 0.4
TIMES_CHANNELS = 2  # the width that most channels count as


class Kind(NamedTuple):
    """What suits a kind of network."""

    muon_rate: float
    muon_decay: float  # bounds the weights, and with them the Jacobian: memory that recovery can reach
    fall: int | None  # steps over which the rate falls; twice as many each time it was not enough
    batch: int  # of sets with more images than `at_once`; smaller ones leave noise
    at_once: int
    newton_schulz: int | None = None  # steps at least; None: as many as a matrix needs by its width
    fall_power: float = 1.0


CONVOLUTIONAL = Kind(muon_rate=0.02, muon_decay=0.2, fall=60_000, batch=128, at_once=256, fall_power=2.0)
FEW = Kind(muon_rate=0.01, muon_decay=0.15, fall=None, batch=12_500, at_once=12_500)  # fully connected
MANY = Kind(  # more images than the width
    muon_rate=0.03, muon_decay=0.15, fall=900, batch=12_500, at_once=12_500, newton_schulz=7
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run; all of them end up in the checkpoint."""

    optimizer: str = "adam"  # or "muon"
    rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.99)  # with beta2 = 0.999 the loss spikes once gradients are tiny
    decay: float = 0.0  # share of every weight matrix that a step takes away, per rate
    newton_schulz: int | None = None  # Muon's steps; None: by the width of a matrix
    average: int = 100  # steps that the weights are averaged over at first (`averaged_over`): removes a rate's noise
    batch: int | None = None  # None: all images at every step
    fall: int | None = None  # steps over which the rate falls to nothing; None: it stays, and is cut on plateaus
    straight: bool = False  # the rate falls along a line, not along a cosine
    fall_power: float = 1.0  # of that line or cosine: above 1 more of a fall is spent at low rates
    tf32_until: float = 3e-5  # on a GPU, above this loss the forward pass runs in TF32; the backward pass always does
    finish_from: float | None = 1e-5  # below this loss a linear last layer is solved exactly; None: never
    seed: int = 42

    @classmethod
    def for_network(cls, network: nn.Module, images: int = 1, optimizer: str | None = None, seed: int = 42) -> Recipe:
        """The defaults by kind of network: Muon at a falling rate for convolutional ones, whose last decades are badly
        conditioned, and for more images than a layer has features; Adam for the others, lower the wider they are.
        Batches only for sets too large for one."""
        hidden = [m.out_features for m in network.modules() if isinstance(m, nn.Linear)][:-1]
        channels = [m.out_channels for m in network.modules() if isinstance(m, nn.Conv2d)]
        convolutional = bool(channels)
        width = TIMES_CHANNELS * max(channels) if convolutional else min(hidden, default=1024)
        kind = CONVOLUTIONAL if convolutional else MANY if images > width else FEW
        optimizer = optimizer or ("adam" if kind is FEW else "muon")
        by_muon = optimizer == "muon"
        return cls(
            optimizer=optimizer,
            rate=kind.muon_rate if by_muon else min(1e-3, ADAM_RATE_TIMES_WIDTH / width),
            decay=kind.muon_decay if by_muon else 0.0,
            newton_schulz=max(kind.newton_schulz, newton_schulz_steps(width))
            if by_muon and kind.newton_schulz
            else None,
            batch=kind.batch if images > kind.at_once else None,
            fall=kind.fall,
            straight=kind is MANY,
            fall_power=kind.fall_power,
            finish_from=None if kind is MANY else cls.finish_from,  # a wide last layer would forget what it holds
            seed=seed,
        )

    def __post_init__(self) -> None:
        if self.optimizer not in ("adam", "muon"):
            raise InputError(f"There is no optimizer {self.optimizer!r}; choose adam or muon.")
        if not 0 < self.rate < math.inf:
            raise InputError(f"The learning rate must be positive, got {self.rate}.")
        if not 0 <= self.decay * self.rate < 1:
            raise InputError(f"The decay must be zero or more and below 1 / rate, got {self.decay}.")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"Adam's betas are two numbers from 0 to below 1, got {self.betas}.")
        if self.newton_schulz is not None and self.newton_schulz < 1:
            raise InputError(f"Muon takes at least one Newton-Schulz step, got {self.newton_schulz}.")
        if self.average < 1:
            raise InputError(f"The weights are averaged over at least one step, got {self.average}.")
        if self.fall is not None and self.fall < 1:
            raise InputError(f"The rate falls over at least one step, got {self.fall}.")
        if not 0 < self.fall_power < math.inf:
            raise InputError(f"The power of a fall must be positive, got {self.fall_power}.")
        if self.batch is not None and self.batch < 1:
            raise InputError(f"A batch has at least one image, got {self.batch}.")

    def record(self) -> dict[str, Any]:
        """All settings; later ones where they are used, so that runs from before them can still be gone on with."""
        return {name: value for name, value in asdict(self).items() if name not in LATER or value != LATER[name]}
