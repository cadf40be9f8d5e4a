"""What an experiment consists of: trainings, and cells that are measured with their weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from recollect.auditing.method_setup import method_identity
from recollect.auditing.request import STARTS
from recollect.degradation import Observation, mask, observe
from recollect.diffusion import BUNDLED
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import DDNM, METHODS
from recollect.networks import FullyConnected, UNet
from recollect.networks.base import PaperSettings
from recollect.records import cell_key, plain

SEED = 42  # of every experiment
GENERIC = DDNM.name  # it never sees a network: one record serves all networks fitted to the same images


@dataclass(frozen=True)
class ImageSet:
    """A set of images: where it is loaded from, and how many of its images are attacked."""

    name: str
    spelling: str  # for recollect.load; {data} stands for the folder of real data sets
    count: int
    attacked: int | None = None  # so many images, spread evenly; None: all
    control_spelling: str | None = None  # of unseen images, if the data set has too few for as many as trained on
    prior: str | None = None  # diffusion model for generic restoration: the bundled one, or a folder in {data}

    def source(self, part: str, data: str | None) -> str:
        """Spell where a part is loaded from; an array DATA/NAME-PART.npz replaces the original files."""
        array = Path(data or "") / f"{self.name}-{part}.npz"
        if data and array.is_file():
            return f"array:{array}"
        if "{data}" in self.spelling and not data:
            raise InputError(f"The images {self.name} are from a real data set: say where it is with --data DIR.")
        if part == "control":
            return (self.control_spelling or self.spelling).format(data=data) + "&part=control"
        return self.spelling.format(data=data)

    def select_attacked(self, images: Images) -> Images:
        """Select the images that are attacked: a sample measures the rates of a large set well enough."""
        if self.attacked is None or self.attacked >= len(images):
            return images
        return images[images.spread(self.attacked)]


@dataclass(frozen=True)
class Fit:
    """A training: a network, the images it is fitted to, the optimizer, and the losses to reach."""

    kind: str  # fc10, fc20 or unet
    activation: str
    optimizer: str
    width: int | tuple[int, ...]  # FC: of all hidden layers, or (of all, of the last)
    images: ImageSet
    milestones: tuple[float, ...]  # train losses at which weights are saved, falling
    goal_seconds: float  # the last milestone should be reached in this time on one H200
    limit_seconds: float  # after this time the best weights so far are used
    limit_steps: int | None = None  # likewise

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.activation}-{self.optimizer}-{self.images.name}"

    @property
    def layers(self) -> int | None:
        """The depth of a fully connected network; None for a U-Net."""
        if self.kind == "unet":
            return None
        return int(self.kind.removeprefix("fc"))

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the weights; milestones and limits only decide which of them are used."""
        names = ("kind", "activation", "optimizer", "width")
        own = {name: plain(getattr(self, name)) for name in names}
        return {**own, "images": self.images.spelling, "seed": SEED}

    def paper_settings(self, noise_std: float) -> PaperSettings:
        """Return the paper's gamma and start for this network."""
        if self.layers is None:
            return UNet.paper_settings_of({"activation": self.activation}, noise_std)
        return FullyConnected.paper_settings_of({"layers": self.layers, "activation": self.activation}, noise_std)

    def network(self, shape: tuple[int, int, int]) -> FullyConnected | UNet:
        widths = self.width if isinstance(self.width, tuple) else (self.width,)
        if self.layers is None:
            return UNet(channels=shape[0], widths=widths, activation=self.activation, seed=SEED)
        last_width = widths[1] if len(widths) > 1 else None
        return FullyConnected(
            shape, layers=self.layers, width=widths[0], last_width=last_width, activation=self.activation, seed=SEED
        )


@dataclass(frozen=True)
class Cell:
    """One method on one set of images under one mask, with the weights of one train loss; one record on disk."""

    fit: Fit
    loss: float | None  # a milestone; None: the lowest loss reached, if the last milestone was not
    set: str
    mask: str
    method: str
    noise_std: float = 0.0
    gamma: float | None = None  # None: the paper's for this network
    paste: bool | None = None  # which errors of the record are meant; None: of the method's own answer

    @property
    def method_name(self) -> str:
        name = self.method if self.gamma is None else f"{self.method}, gamma {self.gamma:g}"
        if self.paste is None:
            return name
        return f"{name}, {'pasted' if self.paste else 'not pasted'}"

    @property
    def loss_name(self) -> str:
        return "best" if self.loss is None else f"{self.loss:.0e}"

    @property
    def is_at_last_loss(self) -> bool:
        return self.loss == self.fit.milestones[-1]

    @property
    def sees_network(self) -> bool:
        return METHODS[self.method].sees_model

    @property
    def identity(self) -> dict[str, Any]:
        """What distinguishes this cell from others; the values begin the file name of its record."""
        identity: dict[str, Any] = {"images": self.fit.images.name}
        if self.sees_network:
            identity = {"training": self.fit.name, "loss": self.loss_name}
        identity |= {"set": self.set, "mask": self.mask, "method": self.method}
        if self.noise_std:
            identity["noise"] = self.noise_std
        if self.gamma is not None:
            identity["gamma"] = f"gamma-{self.gamma:g}"
        return identity

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the numbers; known before anything is computed, so that a record can be found."""
        settings: dict[str, Any] = {"noise_std": self.noise_std, "seed": SEED}
        if self.fit.images.attacked is not None:
            settings["attacked"] = self.fit.images.attacked
        own: dict[str, Any]
        if self.sees_network:
            method = self.build_method()
            own = {"fit": self.fit.identity, "method": method_identity(method)}
        else:
            own = {"images": self.fit.images.spelling, "method": generic_settings(self.fit.images.prior)}
        return own | settings

    @cached_property
    def key(self) -> str:
        return cell_key(self.identity, self.settings)

    def build_method(self, prior: Any = None) -> Any:
        """Build the method with the paper's settings for this network, or with the cell's own gamma."""
        if not self.sees_network:
            return DDNM(prior, seed=SEED)
        setting = self.fit.paper_settings(self.noise_std)
        gamma = setting.gamma if self.gamma is None else self.gamma
        return METHODS[self.method].for_audit(gamma=gamma, start=STARTS[setting.start], paste=self.noise_std == 0)

    def observe(self, images: Images) -> Observation:
        """Damage these images by the cell's mask and noise."""
        truth = mask(self.mask, images.shape, count=len(images), seed=SEED)
        return observe(images, truth, noise_std=self.noise_std, seed=SEED)

    def __str__(self) -> str:
        return " ".join(map(str, self.identity.values()))


@cache
def generic_settings(prior: str | None) -> dict[str, Any]:
    """Describe DDNM with a prior by name, so that its record can be found without opening the prior.

    The bundled prior is named with a hash of its weights. Others are trained under a time limit and never equal;
    their records name the weights.
    """
    hyperparameters = {f.name: f.default for f in fields(DDNM) if f.name not in ("prior", "seed")}
    if prior == BUNDLED.name:
        weights = b"".join(path.read_bytes() for path in sorted(BUNDLED.glob("*.safetensors")))
        prior = f"{prior} {hashlib.sha256(weights).hexdigest()[:12]}"
    return {"kind": DDNM.__name__, **hyperparameters, "prior": prior}
