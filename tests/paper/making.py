"""An experiment small enough to be computed in a second, and records of made-up errors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from recollect.paper.cells import Cell, Fit, ImageSet
from recollect.paper.experiment import Experiment
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale
from recollect.paper.store import Results
from recollect.records import Record

IMAGES = ImageSet("made4", "svhn:{data}/svhn?count=4&seed=42", 4)  # never read: the arrays beside it go first
FIT = Fit("fc3", "lrelu", "adam", 64, IMAGES, (1e-2, 1e-3), 30, 60)


def write_images(folder: Path) -> str:
    """The two sets as ready-made arrays; the folder's name is what --data takes."""
    rng = np.random.default_rng(0)
    for part in ("train", "control"):
        np.savez(folder / f"made4-{part}.npz", images=rng.integers(0, 256, (4, 3, 8, 8), dtype=np.uint8))
    return str(folder)


def bench(folder: Path) -> Bench:
    return Bench(Results(folder / "results"), folder / "work", write_images(folder), torch.device("cpu"))


def experiment(masks: Sequence[str] = ("block", "dust"), fit: Fit = FIT) -> Experiment:
    def cells(_scale: Scale) -> list[Cell]:
        return [
            Cell(fit, loss, part, mask, method)
            for part, losses in (("train", fit.milestones), ("control", fit.milestones[-1:]))
            for loss in losses
            for mask in masks
            for method in ("iterate", "known")
        ]

    return Experiment("made", "a small experiment", "nowhere", cells)


def made_up(results: Results, cells: Sequence[Cell], errors: dict[str, list[float]]) -> None:
    """A record for each cell with these errors of its method."""
    for cell in cells:
        mse = errors[cell.method]
        results.add(
            Record(
                cell.identity,
                cell.settings,
                [str(i) for i in range(len(mse))],
                mse,
                [1] * len(mse),
                [40] * len(mse),
                ["done"] * len(mse),
                seconds=1.0,
                provenance={"train_loss": cell.loss or 2e-7, "device": "made up"},
            )
        )
