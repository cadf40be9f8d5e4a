"""What an experiment consists of: trainings, and cells that are measured with their weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch

from recollect.auditing.method_setup import method_identity
from recollect.auditing.request import STARTS
from recollect.degradation import Observation, mask, observe
from recollect.diffusion import BUNDLED
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import DDNM, METHODS, Biharmonic
from recollect.networks import FullyConnected, UNet
from recollect.networks.base import PaperSettings
from recollect.paper.new_masks import NEW_MASKS
from recollect.records import cell_key, plain
from recollect.sources import load
from recollect.training import Recipe

OF_NETWORK = ("width", "dropout")  # changes of a network; all others are of the recipe
MORE_CONTROL = "more-control"  # the part of a set with more unseen images than trained on
SEED = 42  # of images, masks and noise, and of the first training of every network
GENERIC = (DDNM.name, Biharmonic.name)  # they see no network: one record serves all networks of the same images


@dataclass(frozen=True)
class ImageSet:
    """A set of images: where it is loaded from, and how many of its images are attacked."""

    name: str
    spelling: str  # for recollect.load; {data} stands for the folder of real data sets
    count: int
    attacked: int | None = None  # so many images, spread evenly; None: all
    control_spelling: str | None = None  # of unseen images, if the data set has too few for as many as trained on
    prior: str | None = None  # diffusion model for generic restoration: the bundled one, or a folder in {data}
    more_control_spellings: tuple[str, ...] = ()  # of the part `more-control`: more unseen images than trained on
    first_of: str | None = None  # the larger set that the spelling names; this set is its first `count` images

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that can be loaded."""
        return ("train", "control", MORE_CONTROL) if self.more_control_spellings else ("train", "control")

    @property
    def identity(self) -> str:
        """What tells this set from others in the settings of a record."""
        return self.spelling if self.first_of is None else f"{self.spelling}, first {self.count}"

    def load(self, part: str, data: str | None) -> Images:
        """Load a part, from all its sources."""
        loaded = [load(source) for source in self.sources(part, data)]
        if len(loaded) == 1:
            return loaded[0]
        ids = [image for images in loaded for image in images.ids]
        return Images.from_uint8(torch.cat([images.stored for images in loaded]), ids, f"{self.name} {part}")

    def sources(self, part: str, data: str | None) -> list[str]:
        """Spell where a part is loaded from; an array DATA/NAME-PART.npz replaces the original files."""
        array = Path(data or "") / f"{self.first_of or self.name}-{part}.npz"
        if data and array.is_file():
            return [f"array:{array}"]
        if "{data}" in self.spelling and not data:
            raise InputError(f"The images {self.name} are from a real data set: say where it is with --data DIR.")
        spellings = {
            "train": (self.spelling,),
            "control": (f"{self.control_spelling or self.spelling}&part=control",),
            MORE_CONTROL: self.more_control_spellings,
        }
        return [spelling.format(data=data) for spelling in spellings[part]]


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
    seed: int = SEED  # of the first weights and the order of batches
    skip: bool = False  # of a U-Net: skip connections
    plain: bool = False  # PyTorch's initialisation, and Adam without averaging, decay and annealing
    changes: tuple[tuple[str, float], ...] = ()  # settings of the recipe, or width and dropout of the network

    @property
    def name(self) -> str:
        """A name for files: what is usual is not said."""
        kind = f"{self.kind}-skip" if self.skip else self.kind
        parts = [kind, self.activation, self.optimizer, self.images.name]
        if self.plain:
            parts.append("plain")
        parts += [f"{name}-{value:g}" for name, value in self.changes]
        if self.seed != SEED:
            parts.append(f"seed{self.seed}")
        return "-".join(parts)

    @property
    def first(self) -> Fit:
        """The first training of the same network; others differ from it in their seed alone."""
        return replace(self, seed=SEED)

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
        own |= {name: True for name in ("skip", "plain") if getattr(self, name)}
        if self.changes:
            own["changes"] = dict(self.changes)
        return {**own, "images": self.images.identity, "seed": self.seed}

    def paper_settings(self, noise_std: float) -> PaperSettings:
        """Return the paper's gamma and start for this network."""
        if self.layers is None:
            return UNet.paper_settings_of({"activation": self.activation}, noise_std)
        return FullyConnected.paper_settings_of({"layers": self.layers, "activation": self.activation}, noise_std)

    def network(self, shape: tuple[int, int, int]) -> FullyConnected | UNet:
        """Build the network with its first weights."""
        widths = self._widths
        shared: dict[str, Any] = {"activation": self.activation, "seed": self.seed}
        if self.plain:
            shared["initialisation"] = "pytorch"
        if self.layers is None:
            return UNet(channels=shape[0], widths=widths, skip=self.skip, **shared)
        own: dict[str, Any] = {"width": widths[0], "last_width": widths[1] if len(widths) > 1 else None}
        own |= {name: value for name, value in self.changes if name in OF_NETWORK and name != "width"}
        return FullyConnected(shape, layers=self.layers, **own, **shared)

    @property
    def _widths(self) -> tuple[int, ...]:
        """The widths of the layers; a changed width is that of the first, and the others keep their ratio to it."""
        usual = self.width if isinstance(self.width, tuple) else (self.width,)
        first = dict(self.changes).get("width", usual[0])
        return tuple(int(width * first / usual[0]) for width in usual)

    def recipe(self, network: FullyConnected | UNet, images: int) -> Recipe:
        """Return the settings of the training."""
        recipe = Recipe.for_network(network, images, optimizer=self.optimizer, seed=self.seed)
        if self.plain:
            recipe = Recipe.plain(images, seed=self.seed)
        changed: dict[str, Any] = {name: value for name, value in self.changes if name not in OF_NETWORK}
        return replace(recipe, **changed)


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
    attacked: int | None = None  # so many images, spread evenly; None: as many as the set says

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
    def needs_prior(self) -> bool:
        return METHODS[self.method].takes("prior")

    @property
    def most_attacked(self) -> int | None:
        """How many images are attacked; None: all."""
        return self.fit.images.attacked if self.attacked is None else self.attacked

    def select_attacked(self, images: Images) -> Images:
        """Select the images that are attacked: a sample measures the rates of a large set well enough."""
        most = self.most_attacked
        return images if most is None or most >= len(images) else images[images.spread(most)]

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
        if self.attacked is not None:
            identity["attacked"] = f"attacked-{self.attacked}"
        return identity

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the numbers; known before anything is computed, so that a record can be found."""
        settings: dict[str, Any] = {"noise_std": self.noise_std, "seed": SEED}
        if self.most_attacked is not None:
            settings["attacked"] = self.most_attacked
        own: dict[str, Any] = {"images": self.fit.images.identity}
        if self.sees_network:
            own = {"fit": self.fit.identity}
        if self.needs_prior:
            own["method"] = generic_settings(self.fit.images.prior)
        else:
            own["method"] = method_identity(self.build_method())
        return own | settings

    @cached_property
    def key(self) -> str:
        return cell_key(self.identity, self.settings)

    def build_method(self, prior: Any = None) -> Any:
        """Build the method with the paper's settings for this network, or with the cell's own gamma.

        DDNM has its own defaults: the paper states no settings of it.
        """
        if self.needs_prior:
            return DDNM(prior, seed=SEED)
        if not self.sees_network:
            return METHODS[self.method]()
        setting = self.fit.paper_settings(self.noise_std)
        gamma = setting.gamma if self.gamma is None else self.gamma
        return METHODS[self.method].for_audit(gamma=gamma, start=STARTS[setting.start], paste=self.noise_std == 0)

    def observe(self, images: Images) -> Observation:
        """Damage these images by the cell's mask and noise."""
        kept = NEW_MASKS[self.mask](*images.shape[1:]) if self.mask in NEW_MASKS else self.mask
        truth = mask(kept, images.shape, count=len(images), seed=SEED)
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
