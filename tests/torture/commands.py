"""The commands that are killed, starved and run on edited records: small, and equal bit for bit when repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect.checkpoints import save_checkpoint
from recollect.networks import NETWORKS
from recollect.paper.experiments import EXPERIMENTS
from recollect.training import run_folder
from tests.auditing.making import pictures
from tests.models.making import script, tiny
from tests.paper.making import make_experiment, write_images
from tests.torture.canonical import canonical
from tests.torture.children import Child, Limits, fork, recollect, start_cold

PATIENCE = 300  # seconds for a command of a few seconds on a busy machine
RESULTS = "results"  # the folder of a trial in which every command writes


@dataclass(frozen=True)
class Command:
    """A command with its arguments; it writes below `results` in its working folder."""

    name: str
    arguments: Callable[[Path], Sequence[str]]  # of the folder of inputs
    prepare: Callable[[], None] = lambda: None  # in the child, before the command begins
    is_plain: bool = True  # a new interpreter runs it too, without `prepare`

    def start(self, inputs: Path, folder: Path, limits: Limits | None = None, **more: Any) -> Child:
        run = recollect(self.arguments(inputs))

        def task() -> None:
            self.prepare()
            run()

        return fork(task, folder, limits, **more)

    def start_cold(self, inputs: Path, folder: Path) -> Child:
        return start_cold(self.arguments(inputs), folder)


def _save_often() -> None:
    """Save the state of a training at every chance: the usual interval outlasts these trainings."""
    run_folder.SAVE_SECONDS = 0.05
    run_folder.SAVE_SHARE = 1.0


def _add_made_experiment() -> None:
    _save_often()
    EXPERIMENTS._members["made"] = make_experiment()


def _audit(inputs: Path, *more: str) -> list[str]:
    sets = ["--train", str(inputs / "train.npy"), "--control", str(inputs / "control.npy")]
    return ["audit", *sets, "--out", f"{RESULTS}/audit", *more]


COMMANDS = {
    command.name: command
    for command in [
        Command(
            "train",
            lambda inputs: [
                "train", str(inputs / "train.npy"), "--layers", "3", "--width", "64", "--until", "1e-4",
                "--max-steps", "2000", "--out", f"{RESULTS}/run",
            ],
            _save_often,
        ),
        Command(
            "train-batches",
            lambda inputs: [
                "train", str(inputs / "train.npy"), "--layers", "3", "--width", "32", "--batch", "3", "--optimizer",
                "muon", "--until", "1e-9", "--max-steps", "400", "--out", f"{RESULTS}/run",
            ],
            _save_often,
        ),
        Command(
            "audit",
            lambda inputs: _audit(
                inputs, str(inputs / "model.safetensors"), "--masks", "block,half", "--methods", "blind,known",
            ),
        ),
        Command(
            "audit-searched",
            lambda inputs: _audit(
                inputs, str(inputs / "model.pt"), "--masks", "block", "--methods", "blind", "--attractors", "1",
            ),
        ),
        Command(
            "paper",
            lambda inputs: [
                "paper", "run", "made", "--data", str(inputs), "--results", f"{RESULTS}/records", "--work",
                f"{RESULTS}/work",
            ],
            _add_made_experiment,
            is_plain=False,
        ),
    ]
}  # fmt: skip


@dataclass(frozen=True)
class Reference:
    """What a command leaves when nothing disturbs it, and how long it takes."""

    content: dict[str, Any]
    seconds: float
    folder: Path


def write_inputs(folder: Path) -> Path:
    """Write images and models that the commands read."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "train.npy", pictures(10, 1).numpy())
    np.save(folder / "control.npy", pictures(5, 2).numpy())
    network = NETWORKS["fc"].for_images((3, 8, 8), layers=3, width=48, seed=5)
    save_checkpoint(folder / "model.safetensors", network, {})
    script(tiny(), folder / "model.pt", torch.rand(1, 3, 8, 8))
    write_images(folder)
    return folder


def write_reference(command: Command, inputs: Path, folder: Path) -> None:
    """Run a command undisturbed, and note how long it took."""
    child = command.start(inputs, folder)
    ended = child.wait(PATIENCE)
    if ended.code not in (0, 1) or not (folder / RESULTS).is_dir():
        raise RuntimeError(f"{command.name} fails undisturbed: {ended.err or ended.out}")
    (folder / "reference.json").write_text(json.dumps({"code": ended.code, "seconds": ended.cpu_seconds}))


def read_reference(folder: Path) -> Reference:
    seconds = json.loads((folder / "reference.json").read_text())["seconds"]
    return Reference(canonical(folder / RESULTS), seconds, folder)
