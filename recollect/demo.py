"""The demo: train a network on bundled photographs until it fits them, then audit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from recollect.auditing import Audit, AuditProgress, audit
from recollect.networks import FullyConnected
from recollect.sources import load
from recollect.training import Progress, Recipe, Training, train_to_loss

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Demo:
    """What the demo trains on, and how."""

    train: str = "photos?count=40&size=32"
    control: str = "photos?count=40&size=32&part=control"
    layers: int = 6
    width: int = 512
    loss: float = 1e-8
    seed: int = 42

    def train_network(self, out: Path, report: Report | None = None) -> Training:
        """Train a small fully connected network until it fits the photographs."""
        images = load(self.train)
        network = FullyConnected(images.shape, layers=self.layers, width=self.width, seed=self.seed)
        recipe = Recipe(seed=self.seed)
        return train_to_loss(network, images, self.loss, recipe=recipe, out=out, device="cpu", report=report)

    def audit_network(self, network: nn.Module, out: Path, progress: AuditProgress | None = None) -> Audit:
        """Audit the network under six masks, with photographs of other scenes as control."""
        return audit(
            network, train=self.train, control=self.control, out=out, command="recollect demo", progress=progress,
            title="recollect's demo: FC-6 on 40 photographs",
        )  # fmt: skip


DEMO = Demo()
