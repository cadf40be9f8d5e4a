"""What an experiment consists of: trainings, and cells that are measured on what they give."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from recollect.auditing.method_setup import method_identity
from recollect.auditing.tuning import papers_setting
from recollect.degradation import Observation, mask, observe
from recollect.diffusion import BUNDLED
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import DDNM, METHODS
from recollect.networks import FullyConnected, UNet
from recollect.records import cell_key, plain

SEED = 42  # of every experiment in the paper
GENERIC = "ddnm"  # the method that never sees a network: one record serves all networks fitted to the same images


@dataclass(frozen=True)
class ImageSet:
    """Images by a short name; the spelling's {data} stands for the folder of real data sets."""

    name: str
    spelled: str
    count: int
    attacked: int | None = None  # so many of them, spread evenly; None: all
    others: str | None = None  # spells images not trained on, where there are too few for as many as are trained on
    prior: str | None = None  # the diffusion model that restores them generically: the bundled one, or {data}'s own

    def source(self, part: str, data: str | None) -> str:
        """Where to load it from. DATA/NAME-PART.npz goes first, for machines that cannot read the original files."""
        ready_made = Path(data or "") / f"{self.name}-{part}.npz"
        if data and ready_made.is_file():
            return f"array:{ready_made}"
        if "{data}" in self.spelled and not data:
            raise InputError(f"The images {self.name} are from a real data set: say where it is with --data DIR.")
        if part == "control":
            return (self.others or self.spelled).format(data=data) + "&part=control"
        return self.spelled.format(data=data)

    def chosen(self, images: Images) -> Images:
        """Those that are attacked: of very many images a share tells the rates well enough."""
        if self.attacked is None or self.attacked >= len(images):
            return images
        return images[images.spread(self.attacked)]


@dataclass(frozen=True)
class Fit:
    """A training: a network, the images it is fitted to, the optimizer, and how far it is to go."""

    kind: str  # fc10, fc20 or unet
    activation: str
    optimizer: str
    width: int | tuple[int, ...]  # FC: of all hidden layers, or (of all, of the last)
    images: ImageSet
    milestones: tuple[float, ...]  # train losses at which weights are kept, falling
    goal_seconds: float  # in which the last is to be reached on one H200
    limit_seconds: float  # after which the best so far is taken

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.activation}-{self.optimizer}-{self.images.name}"

    @property
    def layers(self) -> int | None:
        return None if self.kind == "unet" else int(self.kind.removeprefix("fc"))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the weights; the rest only says when to look at them."""
        names = ("kind", "activation", "optimizer", "width")
        return {**{n: plain(getattr(self, n)) for n in names}, "images": self.images.spelled, "seed": SEED}

    def network(self, shape: tuple[int, int, int]) -> FullyConnected | UNet:
        widths = self.width if isinstance(self.width, tuple) else (self.width,)
        if self.layers is None:
            return UNet(channels=shape[0], widths=widths, activation=self.activation, seed=SEED)
        width, *last = widths
        return FullyConnected(
            shape, layers=self.layers, width=width, last_width=last[0] if last else None, activation=self.activation,
            seed=SEED,
        )  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One method on one set under one mask, by weights of one train loss; one record on disk."""

    fit: Fit
    loss: float | None  # a milestone; None: the best that was reached, where that is short of the last
    set: str
    mask: str
    method: str
    noise_std: float = 0.0
    gamma: float | None = None  # None: the paper's for this network

    @property
    def method_name(self) -> str:
        return self.method if self.gamma is None else f"{self.method}, gamma {self.gamma:g}"

    @property
    def loss_name(self) -> str:
        return "best" if self.loss is None else f"{self.loss:.0e}"

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this cell from others; its words are the beginning of the record's file name."""
        seen = {"training": self.fit.name, "loss": self.loss_name}
        words = {"set": self.set, "mask": self.mask, "method": self.method}
        of = seen if self.sees_network else {"images": self.fit.images.name}
        more = {"noise": self.noise_std} if self.noise_std else {}
        return of | words | more | ({} if self.gamma is None else {"gamma": f"gamma-{self.gamma:g}"})

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the numbers, known before anything is computed: a record can be looked for."""
        rest: dict[str, Any] = {"noise_std": self.noise_std, "seed": SEED}
        if (attacked := self.fit.images.attacked) is not None:
            rest["attacked"] = attacked
        if not self.sees_network:
            return {"images": self.fit.images.spelled, "method": generic_settings(self.fit.images.prior), **rest}
        return {"fit": self.fit.identity, "method": method_identity(self.settled_method()), **rest}

    @property
    def key(self) -> str:
        return cell_key(self.identity, self.settings)

    @property
    def sees_network(self) -> bool:
        return self.method != GENERIC

    def settled_method(self, prior: Any = None) -> Any:
        """The method that is meant, with the paper's settings for this network but for gamma where one is given."""
        if not self.sees_network:
            return DDNM(prior, seed=SEED)
        setting = papers_setting(self.fit.layers, self.fit.activation, self.noise_std)
        gamma = setting.gamma if self.gamma is None else self.gamma
        return METHODS[self.method].for_audit(gamma=gamma, start=setting.start, paste=self.noise_std == 0)

    def observe(self, images: Images) -> Observation:
        """These images as its method sees them."""
        truth = mask(self.mask, images.shape, count=len(images), seed=SEED)
        return observe(images, truth, noise_std=self.noise_std, seed=SEED)

    def __str__(self) -> str:
        return " ".join(map(str, self.identity.values()))


@cache
def generic_settings(prior: str | None) -> dict[str, Any]:
    """The generic method's, from its class and the name of its prior: known where no prior can be opened.

    The bundled one is named with its weights. Others are trained by the clock, so no two are alike: the record says
    which weights they were.
    """
    own = {f.name: f.default for f in fields(DDNM) if f.name not in ("prior", "seed")}
    if prior == BUNDLED.name:
        weights = b"".join(path.read_bytes() for path in sorted(BUNDLED.glob("*.safetensors")))
        prior = f"{prior} {hashlib.sha256(weights).hexdigest()[:12]}"
    return {"kind": DDNM.__name__, **own, "prior": prior}
