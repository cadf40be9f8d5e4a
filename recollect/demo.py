"""The demos: train an autoencoder or a diffusion model on bundled photographs, then audit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from recollect.auditing import Audit, AuditProgress, audit
from recollect.diffusion import Denoiser, DenoiserRecipe, train_denoiser
from recollect.networks import FullyConnected
from recollect.sources import load
from recollect.training import Progress, Recipe, Training, train_to_loss

TRAIN = "photos?count=40&size=32"
CONTROL = f"{TRAIN}&part=control"  # crops of other parts of the photographs

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Demo:
    """What the demo trains on, and how."""

    train: str = TRAIN
    control: str = CONTROL
    layers: int = 6
    width: int = 512
    loss: float = 1e-8
    seed: int = 42
    masks: str = "all"

    def train_network(self, out: Path, report: Report | None = None) -> Training:
        """Train a small fully connected network until it fits the photographs."""
        images = load(self.train)
        network = FullyConnected(images.shape, layers=self.layers, width=self.width, seed=self.seed)
        recipe = Recipe(seed=self.seed, solve_below=1e-5)  # minutes sooner than training to the end
        return train_to_loss(network, images, self.loss, recipe=recipe, out=out, device="cpu", report=report)

    def audit_network(self, network: nn.Module, out: Path, progress: AuditProgress | None = None) -> Audit:
        """Audit the network under six masks, with crops of other parts of the photographs as control."""
        return audit(
            network, train=self.train, control=self.control, masks=self.masks, out=out, command="recollect demo",
            progress=progress, title="recollect's demo: FC-6 on 40 crops of photographs",
        )  # fmt: skip


@dataclass(frozen=True)
class DiffusionDemo:
    """What the demo of a diffusion model trains on, for how long, and how it is attacked.

    The training ends after a number of steps: after a given time a busy machine would have memorized nothing.
    """

    train: str = TRAIN
    control: str = CONTROL
    width: int = 768
    blocks: int = 4
    batch: int = 128
    max_steps: int = 800
    masks: str = "block,half,dust"
    methods: str = "blind,known,iterate"
    seed: int = 42

    def train_denoiser(self, out: Path, report: Callable[[str], None] | None = None) -> Denoiser:
        """Train a small fully connected denoiser on the photographs."""
        settings = {"width": self.width, "blocks": self.blocks}
        recipe = DenoiserRecipe("residual", settings, batch=self.batch, seed=self.seed)
        return train_denoiser(
            load(self.train), out, max_steps=self.max_steps, recipe=recipe, device="cpu", samples=16, report=report
        )

    def audit_denoiser(self, denoiser: Denoiser, out: Path, progress: AuditProgress | None = None) -> Audit:
        """Audit the denoiser, with crops of other parts of the photographs as control."""
        return audit(
            denoiser, train=self.train, control=self.control, masks=self.masks, methods=self.methods, out=out,
            command="recollect demo --diffusion", progress=progress,
            title="recollect's demo: a diffusion model of 40 crops of photographs",
        )  # fmt: skip


DEMO = Demo()
DIFFUSION_DEMO = DiffusionDemo()
