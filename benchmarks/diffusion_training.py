"""Trainings of several lengths for little more than the longest one.

The recipe keeps its rate for half of a training and then lets it fall. All lengths share the steps at the full rate. A
shorter training branches off at half of its length: its network is the one that a training of that length alone gives.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from recollect.diffusion import DenoiserRecipe
from recollect.diffusion.learning import Learner
from recollect.diffusion.networks import DenoisingNetwork
from recollect.diffusion.train import eight_bit, train_denoiser
from recollect.errors import InputError
from recollect.images import Images

FLAT = 0.5  # of a training, before its rate falls


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with averaged weights, and what its training took."""

    network: DenoisingNetwork
    steps: int
    epochs: float
    seconds: float  # at the speed of all trainings together
    loss: float | None  # mean, while the rate fell; None where the trainer keeps none


def learner_for(images: Images, recipe: DenoiserRecipe, device: torch.device) -> Learner:
    compiles = device.type == "cuda"
    return Learner(recipe.make_network(images.image_shape), eight_bit(images).to(device), recipe, compiles=compiles)


def seconds_a_step(learner: Learner, steps: int) -> float:
    """Time some steps, which are then undone; the first one captures the graph and is not timed."""
    with learner.keeping_state():
        learner.step(0.0)
        _wait(learner)
        began = time.monotonic()
        for _ in range(steps):
            learner.step(0.0)
        _wait(learner)
        return (time.monotonic() - began) / steps


def steps_in_all(lengths: Sequence[int]) -> int:
    """Count the steps of all lengths: shorter ones add those at a falling rate."""
    return max(lengths) + sum(length - int(FLAT * length) for length in sorted(lengths)[:-1])


def train_lengths(learner: Learner, lengths: Sequence[int]) -> list[Trained]:
    """Train for each number of steps, shortest first."""
    began, done, trained = time.monotonic(), 0, []
    for length in sorted(lengths):
        while learner.steps < int(FLAT * length):
            learner.step(0.0)
            done += 1
        with nullcontext() if length == max(lengths) else learner.keeping_state():
            falling = length - learner.steps
            learner.take_loss(1)
            while learner.steps < length:
                learner.step(learner.steps / length)
            loss = learner.take_loss(falling)
            done += falling
            trained.append((learner.averaged_network(), length, loss))
        if not loss < float("inf"):
            raise InputError("The training diverged: the loss is not finite.")
    _wait(learner)
    each = (time.monotonic() - began) / done
    batch, images = learner.recipe.batch, len(learner.images)
    return [Trained(network, steps, steps * batch / images, steps * each, loss) for network, steps, loss in trained]


def train_in_folder(images: Images, folder: Path, steps: int, recipe: DenoiserRecipe, device: torch.device) -> Trained:
    """Train for so many steps in a folder, where a training that was stopped is resumed."""
    report = partial(print, flush=True)
    denoiser = train_denoiser(images, folder, max_steps=steps, recipe=recipe, device=device, samples=0, report=report)
    seconds = denoiser.card.training["seconds"] if denoiser.card else math.nan
    return Trained(denoiser.network, steps, steps * recipe.batch / len(images), seconds, None)


def _wait(learner: Learner) -> None:
    if learner.images.is_cuda:
        torch.cuda.synchronize(learner.images.device)
