"""An experiment small enough to be computed in a second, and records of invented errors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect.paper.cells import Cell, Fit, ImageSet
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.render.figures import draw
from recollect.paper.run import run
from recollect.paper.scales import SMALL, Scale
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace
from recollect.record_lines import record_line
from recollect.records import Record

IMAGES = ImageSet("made4", "svhn:{data}/svhn?count=4&seed=42", 4)  # never read: the arrays beside it replace it
FIT = Fit("fc3", "lrelu", "adam", 64, IMAGES, (1e-2, 1e-3), 30, 600)
ERRORS = {
    "iterate": [1e-1, 1e-1, 1e-5, 1e-9], "blind": [1e-1, 1e-5, 1e-9, 1e-9], "known": [1e-9] * 4,
    "refined": [1e-9] * 4, "known-400": [1e-9] * 4, "ddnm": [1e-1] * 4, "zero-rule": [1e-9, 1e-9, 1e-1, 1e-1],
    "biharmonic": [1e-1] * 4,
}  # fmt: skip
SHORT = 200  # steps: enough for a loss of 1e-2 of this network, not for one of 1e-30


def write_images(folder: Path) -> str:
    """Write both sets as arrays; the folder is what --data takes."""
    rng = np.random.default_rng(0)
    for part in ("train", "control"):
        np.savez(folder / f"made4-{part}.npz", images=rng.integers(0, 256, (4, 3, 8, 8), dtype=np.uint8))
    return str(folder)


def make_workspace(folder: Path) -> Workspace:
    folder.mkdir(exist_ok=True)
    return Workspace(Store(folder / "results"), folder / "work", write_images(folder), torch.device("cpu"))


def records_alone(folder: Path) -> Workspace:
    """Make a workspace without data: what is drawn comes from records."""
    return Workspace(Store(folder / "results"), folder / "work", None, torch.device("cpu"))


def make_experiment(masks: Sequence[str] = ("block", "dust"), fit: Fit = FIT) -> Experiment:
    def cells(_scale: Scale) -> list[Cell]:
        return [
            Cell(fit, loss, part, mask, method)
            for part, losses in (("train", fit.milestones), ("control", fit.milestones[-1:]))
            for loss in losses
            for mask in masks
            for method in ("iterate", "known")
        ]

    return Experiment("made", "a small experiment", "nowhere", cells)


def run_lines(folder: Path, *masks: str, **options: Any) -> list[str]:
    """Run the small experiment and return the lines of its log."""
    log: list[str] = []
    run([make_experiment(masks or ("block", "dust"))], SMALL, make_workspace(folder), log=log.append, **options)
    return [line for entry in log for line in entry.splitlines()]


def cell_lines(folder: Path) -> dict[str, str]:
    """Return every record of a folder as its file has it."""
    return {record.key: record_line(record) for record in Store(folder / "results").records()}


def add_records(store: Store, cells: Sequence[Cell], errors: dict[str, list[float]]) -> None:
    """Add a record for each cell with these errors of its method."""
    for cell in cells:
        mse = errors[cell.method]
        count = len(mse)
        provenance = {"train_loss": cell.loss or 2e-7, "unseen_loss": 1e-2, "device": "invented"}
        record = Record(
            cell.identity, cell.settings, [str(i) for i in range(count)], mse, [1] * count, [40] * count,
            ["done"] * count, seconds=1.0, provenance=provenance,
        )  # fmt: skip
        store.add(record)


class ShortScale(Scale):
    """Trainings end after some steps, not after some time."""

    def perfect(self, kind: str, activation: str, optimizer: str) -> Fit:
        return replace(super().perfect(kind, activation, optimizer), limit_steps=SHORT)

    def moderate(self, kind: str, activation: str, optimizer: str) -> Fit:
        return replace(super().moderate(kind, activation, optimizer), limit_steps=SHORT)


SHORT_SCALE = ShortScale(
    "short", few={"fc10": IMAGES}, many={"fc20": IMAGES}, width={"fc10": 32}, many_width={"fc20": 32},
    seconds={"fc10": 600}, many_seconds={"fc20": 600}, by_both={}, masks=("block", "dust"), table_masks=("block",),
)  # fmt: skip


def check_pictures(name: str, workspace: Workspace) -> None:
    """Pictures are computed once, and drawn."""
    log: list[str] = []
    assert run([EXPERIMENTS[name]], SHORT_SCALE, workspace, log=log.append)
    assert f"{name}: pictures are in {workspace.pictures(name)}" in log
    assert len(draw([EXPERIMENTS[name]], SHORT_SCALE, workspace, lambda _: None)) == 1
    again: list[str] = []
    assert run([EXPERIMENTS[name]], SHORT_SCALE, workspace, log=again.append)
    assert len(again) == 1
