"""One training of the paper: checkpoints go to the work folder, the facts about it to the results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch

from recollect.distributed.jobs import Budget, Folder, Shared, Task
from recollect.images import Images
from recollect.paper.cells import Fit
from recollect.paper.origin import origin
from recollect.paper.store import losses_reached
from recollect.paper.workspace import Workspace
from recollect.training import Training, train_to_loss
from recollect.training.saved_state import has_state, remove_state

_HISTORY = 200  # points of the loss curve that are kept


def is_trained(workspace: Workspace, fit: Fit, needed: Collection[float] | None = None) -> bool:
    """Return whether the training ended, and its weights at the needed losses still exist; None: at all losses."""
    facts, saved = workspace.store.training(fit), workspace.checkpoints(fit)
    if facts is None or not facts["finished"]:
        return False
    reached = losses_reached(facts)
    wanted = reached if needed is None else reached & {*needed}
    return wanted <= set(saved) and (facts["reached"] or None in saved)


def is_paused(workspace: Workspace, fit: Fit) -> bool:
    """Return whether a training is still to be resumed: until it ends, its weights replace no earlier ones."""
    return has_state(workspace.work / fit.name)


def remove_what_is_spare(workspace: Workspace, fit: Fit, needed: Collection[float] | None) -> None:
    """Remove what fills a disk after a training: its state, and weights at losses that are not needed."""
    if not workspace.store.has_finished(fit):
        return
    remove_state(workspace.work / fit.name)
    for loss, path in workspace.checkpoints(fit).items():
        if needed is not None and loss is not None and loss not in needed:
            path.unlink()


def training_task(
    workspace: Workspace, fit: Fit, images: Shared[Images], budget: Budget, needed: Collection[float] | None = None
) -> Task:
    """Describe a training, or its continuation, that ends with the budget; then only needed weights are kept."""

    def keep(facts: dict[str, Any]) -> str:
        line = keep_facts(facts)
        if facts["finished"]:
            remove_what_is_spare(workspace, fit, needed)
        return line

    def keep_facts(facts: dict[str, Any]) -> str:
        reached = ", ".join(f"{m['wanted']:.0e} in {m['seconds']:.0f} s" for m in facts["milestones"])
        line = f"{fit.name}: trained: {reached or 'no milestone'}. {facts['why']}"
        earlier = workspace.store.training(fit)
        if earlier and earlier["finished"] and not losses_reached(facts) > losses_reached(earlier):
            return f"{line} The record of an earlier training stays, as its cells do."
        workspace.store.add_training(fit, facts)
        return line

    inputs = (fit, images, Folder(workspace.work / fit.name), budget.left, workspace.device)
    return Task(f"{fit.name}: training", train, inputs, keep, first=True)


def train(fit: Fit, images: Images, folder: Path, pause_after: float, device: torch.device) -> dict[str, Any]:
    """Train into the folder and return the facts to keep; after `pause_after` seconds the training pauses."""
    network = fit.network(images.image_shape)
    recipe = fit.recipe(network, len(images))
    outcome = train_to_loss(
        network, images, fit.milestones[-1], fit.milestones, recipe=recipe, out=folder, device=device,
        max_seconds=fit.limit_seconds, max_steps=fit.limit_steps, pause_after=pause_after,
    )  # fmt: skip
    return {
        **_outcome_facts(fit, outcome),
        "fit": fit.identity, "recipe": recipe.record(), "network": network.settings,
        "images": {"name": fit.images.name, "hash": images.hash, "count": len(images)},
        "provenance": origin(device, seed=fit.seed, precision={"steps": outcome.precision, "measured": "float32"}),
    }  # fmt: skip


def _outcome_facts(fit: Fit, outcome: Training) -> dict[str, Any]:
    """Describe how the training went: all but the weights."""
    seconds = outcome.history[-1].seconds if outcome.history else 0.0
    every = max(1, len(outcome.history) // _HISTORY)
    return {
        "training": fit.name, "finished": not outcome.suspended, "reached": outcome.reached, "loss": outcome.loss,
        "why": outcome.why, "seconds": round(seconds, 2),
        "goal": {"loss": fit.milestones[-1], "seconds": fit.goal_seconds}, "limit_seconds": fit.limit_seconds,
        "milestones": [
            {"wanted": m.wanted, "loss": m.loss, "steps": m.steps, "seconds": round(m.seconds, 2)}
            for m in outcome.milestones
        ],
        "restarted_from": outcome.restarted_from, "log": outcome.log,
        "history": [[round(p.seconds, 2), p.steps, p.loss, p.averaged, p.rate] for p in outcome.history[::every]],
    }  # fmt: skip
