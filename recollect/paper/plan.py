"""What an experiment consists of: trainings, and cells that are measured on what they give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.auditing.plan import papers_blind, settle_methods
from recollect.autoencoders import FullyConnected, UNet
from recollect.errors import InputError
from recollect.records import cell_key, plain

SEED = 42  # of every experiment in the paper


@dataclass(frozen=True)
class ImageSet:
    """Images by a short name; the spelling's {data} stands for the folder of real data sets."""

    name: str
    spelled: str

    def source(self, part: str, data: str | None) -> str:
        """Where to load it from. DATA/NAME-PART.npz goes first, for machines that cannot read the original files."""
        ready_made = Path(data or "") / f"{self.name}-{part}.npz"
        if data and ready_made.is_file():
            return f"array:{ready_made}"
        if "{data}" in self.spelled and not data:
            raise InputError(f"The images {self.name} are from a real data set: say where it is with --data DIR.")
        return self.spelled.format(data=data) + ("&part=control" if part == "control" else "")


@dataclass(frozen=True)
class Fit:
    """A training: a network, the images it is fitted to, the optimizer, and how far it is to go."""

    kind: str  # fc10, fc20 or unet
    activation: str
    optimizer: str
    width: int | tuple[int, ...]
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
        if isinstance(self.width, tuple):
            return UNet(channels=shape[0], widths=self.width, activation=self.activation, seed=SEED)
        assert self.layers is not None
        return FullyConnected(shape, layers=self.layers, width=self.width, activation=self.activation, seed=SEED)


@dataclass(frozen=True)
class Cell:
    """One method on one set under one mask, by weights of one train loss; one record on disk."""

    fit: Fit
    loss: float | None  # a milestone; None: the best that was reached, where that is short of the last
    set: str
    mask: str
    method: str
    noise_std: float = 0.0

    @property
    def loss_name(self) -> str:
        return "best" if self.loss is None else f"{self.loss:.0e}"

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this cell from others; its words are the beginning of the record's file name."""
        words = {"training": self.fit.name, "loss": self.loss_name, "set": self.set, "mask": self.mask}
        return words | {"method": self.method} | ({"noise": self.noise_std} if self.noise_std else {})

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the numbers, known before anything is computed: a record can be looked for."""
        method = self.settled_method()
        fields = {"kind": type(method).__name__, **plain(method)}
        return {"fit": self.fit.identity, "method": fields, "noise_std": self.noise_std, "seed": SEED}

    @property
    def key(self) -> str:
        return cell_key(self.identity, self.settings)

    def settled_method(self) -> Any:
        """The method that is meant, with the paper's settings for this network."""
        blind = papers_blind(self.fit.layers, self.fit.activation, self.noise_std)
        return settle_methods({self.method: self.method}, blind, self.noise_std)[self.method]

    def __str__(self) -> str:
        return " ".join(map(str, self.identity.values()))
