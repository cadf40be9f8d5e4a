"""The commands that are killed, starved and run on edited records: small, and equal bit for bit when repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect import demo
from recollect.canaries import make_canaries, write_canaries
from recollect.checkpoints import save_checkpoint
from recollect.diffusion import DenoiserRecipe, train_denoiser
from recollect.diffusion import train as denoiser_training
from recollect.images import Images
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
    once: bool = False  # a folder in which it has finished is refused

    def allowed(self, *codes: int) -> tuple[int, ...]:
        """Add to exit codes the one with which a run is refused that has finished before."""
        return (*codes, 2) if self.once else codes

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


def _save_denoisers_often() -> None:
    denoiser_training.SAVED_EVERY = 0.05


def _shrink_demo() -> None:
    """Train and audit what takes seconds: the demo itself takes minutes."""
    _save_often()
    photos = "photos?count=6&size=8"
    demo.DEMO = demo.Demo(photos, f"{photos}&part=control", layers=2, width=32, loss=1e-2, masks="half")


def audit_arguments(inputs: Path, *more: str) -> list[str]:
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
            lambda inputs: audit_arguments(
                inputs, str(inputs / "model.safetensors"), "--masks", "block,half", "--methods", "blind,known",
            ),
        ),
        Command(
            "audit-searched",
            lambda inputs: audit_arguments(
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
        Command(
            "denoiser train",
            lambda inputs: [
                "denoiser", "train", str(inputs / "train.npy"), "--widths", "16", "--batch", "4",
                "--max-steps", "60", "--out", f"{RESULTS}/denoiser",
            ],
            _save_denoisers_often,
        ),
        Command("demo", lambda inputs: ["demo", "--out", f"{RESULTS}/demo"], _shrink_demo, is_plain=False),
        Command(
            "extract",
            lambda inputs: [
                "extract", str(inputs / "model.safetensors"), "--train", str(inputs / "train.npy"), "--samples",
                "200", "--out", f"{RESULTS}/extract",
            ],
        ),
        Command(
            "canaries make",
            lambda inputs: [
                "canaries", "make", "--like", str(inputs / "train.npy"), "--count", "60", "--out",
                f"{RESULTS}/canaries",
            ],
            once=True,
        ),
        Command(
            "audit of canaries",
            lambda inputs: [
                "audit", str(inputs / "model.safetensors"), "--canaries", str(inputs / "canaries"), "--masks", "block",
                "--methods", "iterate", "--out", f"{RESULTS}/audit",
            ],
        ),
        Command(
            "audit of a denoiser",
            lambda inputs: audit_arguments(
                inputs, str(inputs / "denoiser"), "--masks", "block", "--methods", "iterate",
            ),
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
    write_canaries(make_canaries(str(folder / "train.npy"), 20, repeats=[2]), folder / "canaries")
    small = DenoiserRecipe("residual", {"width": 16, "blocks": 1}, batch=4)
    train_denoiser(Images(pictures(10, 1)), folder / "denoiser", max_steps=2, recipe=small, device="cpu", samples=0)
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
