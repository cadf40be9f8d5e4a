"""The whole line on bundled photographs: train to perfect fit, degrade, recover, score, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.auditing.audit import Narrator, audit
from recollect.auditing.result import Audit
from recollect.autoencoders import FullyConnected
from recollect.sources import load
from recollect.training import Recipe, Training, train_to_loss

TRAIN = "photos?count=40&size=32"
CONTROL = "photos?count=40&size=32&part=control"
LOSS = 1e-8


def train_demo_network(out: Path, report: Callable[[Any], None] | None = None, seed: int = 42) -> Training:
    """A small fully connected network, fitted perfectly to 40 photographs."""
    images = load(TRAIN)
    network = FullyConnected(images.shape, layers=6, width=512, seed=seed)
    return train_to_loss(network, images, LOSS, recipe=Recipe(seed=seed), folder=out, device="cpu", report=report)


def demo(
    out: str | Path = "demo", *, report: Callable[[Any], None] | None = None, narrate: Narrator | None = None
) -> tuple[Training, Audit]:
    """Train, audit under the six masks with a control set, write everything to `out`."""
    out = Path(out)
    training = train_demo_network(out / "training", report)
    found = audit(
        training.network, train=TRAIN, control=CONTROL, out=out / "audit", command="recollect demo", narrate=narrate
    )
    return training, found
