"""One training of the paper: its checkpoints go to the work folder, what is worth keeping about it to the results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from recollect.checkpoints import load_checkpoint
from recollect.diffusion import BUNDLED, Prior, open_prior
from recollect.distributed.jobs import Budget, Folder, Shared, Task
from recollect.errors import InputError
from recollect.images import Images
from recollect.paper.cells import SEED, Fit, ImageSet
from recollect.paper.store import Results, losses_reached
from recollect.records import provenance
from recollect.sources import load
from recollect.training import BEST, Recipe, Training, train_to_loss

_HISTORY = 200  # points of the loss curve that are kept


@dataclass(frozen=True)
class Bench:
    """Where things are while experiments are computed."""

    results: Results
    work: Path  # checkpoints and pictures, too large or not free to be kept with the results
    data: str | None  # the folder of the real data sets
    device: torch.device

    def images(self, fit: Fit, part: str) -> Images:
        return load(fit.images.source(part, self.data))

    def checkpoints(self, fit: Fit) -> dict[float | None, Path]:
        """The kept weights of a training by their milestone; None is the best that was reached."""
        folder = self.work / fit.name
        paths: dict[float | None, Path] = {m: folder / f"loss-{m:.0e}.safetensors" for m in fit.milestones}
        paths[None] = folder / BEST
        return {loss: path for loss, path in paths.items() if path.exists()}

    def weights(self, fit: Fit, loss: float | None) -> torch.nn.Module:
        """On the CPU: the device may be another machine's."""
        return load_checkpoint(self.checkpoints(fit)[loss], "cpu").network

    def best_weights(self, fit: Fit) -> torch.nn.Module:
        """The weights at the lowest milestone, or the best where that was not reached."""
        here = self.checkpoints(fit)
        lowest = min((loss for loss in here if loss is not None and None not in here), default=None)
        return self.weights(fit, lowest).to(self.device)

    def prior_folder(self, images: ImageSet) -> Path | None:
        """The diffusion model for these images: the bundled one, or a folder among the data sets."""
        if images.prior is None:
            return None
        return BUNDLED if images.prior == BUNDLED.name else Path(self.data or "") / images.prior

    def prior(self, images: ImageSet) -> Prior:
        """Opened, on the CPU; by its short name, not by where it lies."""
        folder = self.prior_folder(images)
        if folder is None or images.prior is None:
            raise InputError(f"There is no diffusion prior for the images {images.name}.")
        prior = open_prior(folder)
        prior.name = images.prior
        return prior

    def pictures(self, name: str) -> Path:
        return self.work / "pictures" / f"{name}.npz"


def finished(bench: Bench, fit: Fit) -> bool:
    """Whether the training is over and its weights are still here."""
    facts, here = bench.results.training(fit), bench.checkpoints(fit)
    if not facts or not facts["finished"]:
        return False
    return losses_reached(facts) <= set(here) and (facts["reached"] or None in here)


def training(bench: Bench, fit: Fit, images: Shared[Images], budget: Budget) -> Task:
    """Train, or go on with it, as far as the time allows; what is known about it is kept, and said in a line."""

    def keep(facts: dict[str, Any]) -> str:
        reached = ", ".join(f"{m['wanted']:.0e} in {m['seconds']:.0f} s" for m in facts["milestones"])
        words = f"{fit.name}: trained: {reached or 'no milestone'}. {facts['why']}"
        former = bench.results.training(fit)
        if former and former["finished"] and not losses_reached(facts) > losses_reached(former):
            return f"{words} The record of an earlier training stays, as its cells do."
        bench.results.add_training(fit, facts)
        return words

    inputs = (fit, images, Folder(bench.work / fit.name), budget.left, bench.device)
    return Task(f"{fit.name}: training", train, inputs, keep, first=True)


def train(fit: Fit, images: Images, folder: Path, pause: float, device: torch.device) -> dict[str, Any]:
    """Weights go to the folder; the facts that are worth keeping come back. After `pause` seconds it stops for now."""
    network = fit.network(images.shape)
    recipe = Recipe.for_network(network, len(images), optimizer=fit.optimizer, seed=SEED)
    done = train_to_loss(
        network, images, fit.milestones[-1], fit.milestones, recipe=recipe, out=folder, device=device,
        max_seconds=fit.limit_seconds, pause_after=pause,
    )  # fmt: skip
    return _facts(fit, recipe, images, network.settings, done, device) | {"finished": not done.suspended}


def _facts(
    fit: Fit, recipe: Recipe, images: Images, network: dict[str, Any], done: Training, device: torch.device
) -> dict[str, Any]:
    """What a training leaves behind in the results: all but the weights."""
    seconds = done.history[-1].seconds if done.history else 0.0
    every = max(1, len(done.history) // _HISTORY)
    return {
        "training": fit.name, "reached": done.reached, "loss": done.loss, "why": done.why, "seconds": round(seconds, 2),
        "goal": {"loss": fit.milestones[-1], "seconds": fit.goal_seconds}, "limit_seconds": fit.limit_seconds,
        "milestones": [
            {"wanted": m.wanted, "loss": m.loss, "steps": m.steps, "seconds": round(m.seconds, 2)}
            for m in done.milestones
        ],
        "restarted_from": done.restarted_from, "fit": fit.identity, "recipe": recipe.record(), "network": network,
        "images": {"name": fit.images.name, "hash": images.hash, "count": len(images)}, "log": done.log,
        "history": [[round(p.seconds, 2), p.steps, p.loss, p.averaged, p.rate] for p in done.history[::every]],
        "provenance": provenance(device),
    }  # fmt: skip
