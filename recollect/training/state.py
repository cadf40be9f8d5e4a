"""All that changes during a training run, as plain data."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from recollect.checkpoints import describe_network
from recollect.devices.precision import apply_checked
from recollect.errors import InputError
from recollect.images import Images
from recollect.networks import SHRINK
from recollect.training.last_layer import can_solve
from recollect.training.monitor import COLLAPSED, COLLAPSED_WHILE_ANNEALING, PATIENCE, Monitor
from recollect.training.outcome import Milestone
from recollect.training.rate_schedule import Annealing
from recollect.training.recipe import Recipe
from recollect.training.stepper import Stepper


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Weights, and their loss over all images."""

    loss: float
    weights: list[Tensor]

    def copy(self) -> Snapshot:
        return Snapshot(self.loss, [w.detach().clone() for w in self.weights])


@dataclass(eq=False)
class RunState:
    """A training run between two windows of steps."""

    recipe: Recipe
    data_hash: str
    stepper: Stepper
    monitor: Monitor
    annealing: Annealing
    peak_rate: float  # that the annealing starts from
    best: Snapshot
    solve_below: float  # the loss from which the last layer is solved; zero: never
    seconds: float = 0.0
    restarts: int = 0  # from other initial weights
    log: list[str] = field(default_factory=list)
    precision: list[dict[str, Any]] = field(default_factory=list)  # of each part of a step, by first step
    milestones: list[Milestone] = field(default_factory=list)
    ahead: list[Milestone] = field(default_factory=list)  # on disk, from steps that a killed run did not save

    @classmethod
    def start(cls, network: nn.Module, images: Images, recipe: Recipe, device: torch.device) -> RunState:
        """Set up a run of a network on this device before its first step."""
        pixels = images.pixels.to(device)
        if device.type == "cuda" and any(isinstance(m, nn.Conv2d) for m in network.modules()):
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        _check_fit(network, pixels[:1])
        stepper = Stepper(network, pixels, recipe)
        solve_below = recipe.solve_below or 0.0
        state = cls(
            recipe, images.hash, stepper, _monitor_for(recipe, pixels),
            Annealing(recipe.anneal_steps, shape=recipe.anneal_shape, power=recipe.anneal_power),
            peak_rate=recipe.rate, best=Snapshot(math.inf, stepper.weights).copy(),
            solve_below=solve_below if can_solve(network, pixels) else 0.0,
        )  # fmt: skip
        state.note_precision(None)
        return state

    @property
    def network(self) -> nn.Module:
        return self.stepper.network

    @property
    def images(self) -> Tensor:
        return self.stepper.images

    @property
    def steps(self) -> int:
        return self.stepper.steps

    @property
    def restarted_from(self) -> dict[str, float] | None:
        """Seed and scale of the initial weights after the last restart; None without one."""
        if not self.restarts:
            return None
        scale = 1.0 if self.restarts % 2 else SHRINK
        return {"seed": self.recipe.seed + self.restarts, "scale": scale, "restarts": self.restarts}

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for a run to be continued, as a JSON file holds it."""
        recipe = json.loads(json.dumps(self.recipe.record()))
        network = json.loads(describe_network(self.network))
        return {
            "network": network, "recipe": recipe, "data_hash": self.data_hash, "device": self.images.device.type,
            "frozen": list(self.stepper.frozen),
        }  # fmt: skip

    def note(self, message: str) -> None:
        """Add a line to the log."""
        self.log.append(f"[{self.seconds:.1f} s, step {self.steps}] {message}")

    def note_precision(self, loss: float | None) -> None:
        """Record the precision of the steps from here on, and the loss that led to it."""
        now = {"step": self.steps, "seconds": round(self.seconds, 3), "loss": loss}
        self.precision.append({**now, **self.stepper.precision()})


def _monitor_for(recipe: Recipe, images: Tensor) -> Monitor:
    """Set the patience: half the length of an annealing without progress is enough to intervene."""
    constant_loss = float((images - images.mean(0)).double().square().mean())
    if recipe.anneal_steps is None:
        return Monitor(constant_loss, PATIENCE, COLLAPSED)
    return Monitor(constant_loss, min(PATIENCE, recipe.anneal_steps // 2), COLLAPSED_WHILE_ANNEALING)


@torch.no_grad()
def _check_fit(network: nn.Module, image: Tensor) -> None:
    """Refuse a network for other images before the first step."""
    try:
        apply_checked(network, image)
    except RuntimeError as error:
        size = "x".join(map(str, image.shape[1:]))
        raise InputError(f"The network does not take these images of {size}: {error}") from None
