"""The demo: train a network on bundled photographs until it fits them, then audit it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from recollect.auditing import Audit, AuditProgress, audit
from recollect.networks import FullyConnected
from recollect.sources import load
from recollect.training import Progress, Recipe, Training, train_to_loss

TRAIN = "photos?count=40&size=32"
CONTROL = "photos?count=40&size=32&part=control"
LOSS = 1e-8

Report = Callable[[Progress], None]


def train_demo_network(out: Path, report: Report | None = None, seed: int = 42) -> Training:
    """Train a small fully connected network to fit 40 photographs."""
    images = load(TRAIN)
    network = FullyConnected(images.shape, layers=6, width=512, seed=seed)
    return train_to_loss(network, images, LOSS, recipe=Recipe(seed=seed), out=out, device="cpu", report=report)


def audit_demo_network(network: nn.Module, out: Path, progress: AuditProgress | None = None) -> Audit:
    """Audit the network under six masks, with 40 photographs of other scenes as control."""
    return audit(
        network, train=TRAIN, control=CONTROL, out=out, title="recollect's demo: FC-6 on 40 photographs",
        command="recollect demo", progress=progress,
    )  # fmt: skip
