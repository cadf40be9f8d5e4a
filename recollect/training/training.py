"""Training to perfect fit: a loss reached for certain, a checkpoint at each milestone on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.autoencoders import SHRINK, initialise
from recollect.checkpoints import load_checkpoint_about, save_checkpoint
from recollect.errors import InputError
from recollect.images import Images
from recollect.precision import float32_precision
from recollect.records import provenance
from recollect.training.control import CUT, Point, Verdict, Watch, seconds_to
from recollect.training.finish import solve_last_layer
from recollect.training.recipe import Recipe
from recollect.training.state import SavedRun, load_run, save_run
from recollect.training.stepper import Stepper

WINDOW = 50  # steps between two looks at the loss
SAVE_SECONDS = 15.0
MILESTONES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


@dataclass(frozen=True)
class Milestone:
    """A loss that was reached, measured over all images in full float32."""

    wanted: float
    loss: float
    steps: int
    seconds: float
    path: Path | None


@dataclass(frozen=True)
class Progress:
    """What a caller may show while training goes on."""

    point: Point
    next_milestone: float | None
    seconds_left: float | None


@dataclass
class Training:
    """The outcome: the network holds the best weights, every milestone reached is listed, the log is in plain words."""

    network: nn.Module
    loss: float
    milestones: list[Milestone]
    reached: bool
    why: str
    log: list[str]
    history: list[Point] = field(repr=False)

    def __str__(self) -> str:
        return self.why


def train_to_loss(
    network: nn.Module,
    images: Images,
    until: float = 1e-8,
    milestones: Sequence[float] = MILESTONES,
    *,
    recipe: Recipe | None = None,
    folder: str | Path | None = None,
    device: torch.device | str | None = None,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Training:
    """Train until the loss over all images is at or below `until`; resumes what is in `folder`."""
    if not until > 0:
        raise InputError(f"The loss to reach must be positive, got {until}.")
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    run = Run(network.to(where), images, recipe or Recipe.for_network(network), Path(folder) if folder else None, where)
    wanted = sorted({m for m in milestones if m > until * (1 + 1e-9)} | {until}, reverse=True)
    return run.train(wanted, max_seconds or math.inf, max_steps or 2**62, report)


class Run:
    """One training run: steps, looks, interventions, milestones, saves."""

    def __init__(self, network: nn.Module, images: Images, recipe: Recipe, folder: Path | None, device: torch.device):
        self.network, self.recipe, self.folder, self.data_hash = network, recipe, folder, images.hash
        self.images = images.pixels.to(device)
        if device.type == "cuda" and any(isinstance(m, nn.Conv2d) for m in network.modules()):
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.stepper = Stepper(network, self.images, recipe)
        self.watch = Watch(_constant_loss(self.images))
        self.milestones: list[Milestone] = []
        self.log: list[str] = []
        self.steps, self.seconds, self.tries = 0, 0.0, 0
        self.wanted: list[float] = []
        self.next_save = time.monotonic() + SAVE_SECONDS
        self.best_loss, self.best_weights = math.inf, [w.detach().clone() for w in self.stepper.weights]
        self._resume()

    def train(
        self, wanted: list[float], max_seconds: float, max_steps: int, report: Callable[[Progress], None] | None
    ) -> Training:
        self.wanted = [w for w in wanted if w not in {m.wanted for m in self.milestones}]
        started = time.monotonic() - self.seconds
        while self.wanted:
            if self.seconds >= max_seconds or self.steps >= max_steps:
                limit = f"{max_seconds:g} s" if self.seconds >= max_seconds else f"{max_steps} steps"
                return self._end(f"stopped at the limit of {limit}")
            point = self._window(started)
            self._take_milestones(point)
            if self.wanted and min(point.averaged, point.loss) <= (self.recipe.finish_from or 0):
                self._finish(point)
            if self.wanted:
                self._react(point)
            if report:
                next_one = self.wanted[0] if self.wanted else None
                left = seconds_to(self.watch.history, next_one) if next_one else 0.0
                report(Progress(point, next_one, left))
            if time.monotonic() > self.next_save:
                self._save()
        return self._end("reached")

    def _window(self, started: float) -> Point:
        loss = self.stepper.run(WINDOW)
        self.steps += WINDOW
        averaged = self.stepper.measure(averaged=True, precision=self.stepper.forward_precision)
        self.seconds = time.monotonic() - started
        return Point(self.seconds, self.steps, loss, averaged, self.stepper.rate)

    def _take_milestones(self, point: Point) -> None:
        """Keep the better of weights and average; claim a milestone only on a full-precision measurement."""
        averaged = not point.loss < point.averaged
        if min(point.averaged, point.loss) < self.best_loss:
            self.best_loss = min(point.averaged, point.loss)
            source = self.stepper.average if averaged else self.stepper.weights
            self.best_weights = [w.detach().clone() for w in source]
        if self.best_loss > self.wanted[0]:
            return
        with self.stepper.with_average() if averaged else nullcontext():
            loss = self.stepper.measure(averaged=False)
            while self.wanted and loss <= self.wanted[0]:
                self._claim(loss)

    def _claim(self, loss: float, finish: str | None = None) -> None:
        """Write the network as it stands, then say so: what is reported is on disk."""
        wanted = self.wanted.pop(0)
        path = None
        if self.folder:
            path = self.folder / f"loss-{wanted:.0e}.safetensors"
            save_checkpoint(path, self.network, self._about(loss, wanted, finish))
        self.milestones.append(Milestone(wanted, loss, self.steps, self.seconds, path))
        self._say(f"reached {wanted:.0e} (measured {loss:.2e}){f': {finish}' if finish else ''}")

    def _finish(self, point: Point) -> None:
        """Solve the last layer exactly, and take as much of the change as each milestone asks for."""
        own = [w.detach().clone() for w in self.stepper.weights]
        self.stepper.set_weights(self.stepper.average if point.averaged <= point.loss else own)
        with float32_precision("ieee"):
            change = solve_last_layer(self.network, self.images)
        start, taken = self.stepper.measure(averaged=False), 0.0
        while change is not None and self.wanted:
            share = 1 - 0.95 * math.sqrt(min(1.0, self.wanted[0] / start))  # 0.95: to be surely below
            change.apply(share - taken)
            taken, loss = share, self.stepper.measure(averaged=False)
            if loss > self.wanted[0]:
                break
            self.best_loss, self.best_weights = loss, [w.detach().clone() for w in self.stepper.weights]
            self._claim(loss, f"last layer solved by least squares from {start:.2e}, {share:.1%} of the change")
        self.stepper.set_weights(own)

    def _react(self, point: Point) -> None:
        if self.stepper.forward_precision == "tf32" and point.averaged < self.recipe.tf32_until:
            self.stepper.forward_precision = "ieee"
            self._say(f"forward pass in float32 from here, at {point.averaged:.1e}; the backward pass stays in TF32")
        verdict = self.watch.judge(point)
        if verdict is Verdict.FINE:
            return
        if verdict is Verdict.COLLAPSED:
            self.tries += 1
            shrink = 1.0 if self.tries % 2 else SHRINK
            initialise(self.network, self.recipe.seed + self.tries, shrink)
            rate = self.recipe.rate * CUT ** (self.tries // 2)
            self.stepper.restart(rate)
            self._say(f"the output collapsed to a constant ({point.averaged:.1e}): started again from other weights")
        else:
            rate = self.stepper.rate * CUT
            if verdict is Verdict.PLATEAU:
                self.stepper.set_weights(self.stepper.average)
                self.stepper.set_rate(rate)
            else:
                self.stepper.set_weights(self.best_weights)
                self.stepper.restart(rate)
            self._say(f"{verdict.value} at {point.loss:.1e}: back to the best weights, rate cut to {rate:.1e}")
        self.watch.acted(point)

    def _end(self, how: str) -> Training:
        self.stepper.set_weights(self.best_weights)
        loss = self.stepper.measure(averaged=False)
        reached = not self.wanted
        goal = "" if reached else f", short of {self.wanted[-1]:.0e}"
        why = f"Train loss {loss:.2e} {how} after {self.steps} steps, {self.seconds:.0f} s{goal}."
        self._say(why)
        self._save()
        self.network.eval()
        return Training(self.network, loss, self.milestones, reached, why, self.log, self.watch.history)

    def _say(self, words: str) -> None:
        self.log.append(f"[{self.seconds:.1f} s, step {self.steps}] {words}")

    def _about(self, loss: float, wanted: float, finish: str | None) -> dict[str, Any]:
        return {
            "loss": loss, "milestone": wanted, "steps": self.steps, "seconds": round(self.seconds, 3),
            "recipe": self.recipe.record(), "data_hash": self.data_hash, "images": len(self.images),
            "finish": finish, "log": self.log, **provenance(self.images.device),
        }  # fmt: skip

    def _save(self) -> None:
        if not self.folder:
            return
        before = time.monotonic()
        save_run(self.folder, SavedRun.of(self))
        now = time.monotonic()
        self.next_save = now + max(SAVE_SECONDS, 20 * (now - before))  # saving takes at most a twentieth of the time

    def _resume(self) -> None:
        """Go on from the state in the folder; milestones already on disk there stay reached."""
        if self.folder is None or (saved := load_run(self.folder, self.images.device)) is None:
            return
        saved.restore(self)
        self._say("resumed")
        for path in sorted(self.folder.glob("loss-*.safetensors"), reverse=True):
            about = load_checkpoint_about(path)
            facts = (about["milestone"], about["loss"], about["steps"], about["seconds"])
            self.milestones.append(Milestone(*facts, path))


def _constant_loss(images: Tensor) -> float:
    """The loss of the best constant output, the mean image."""
    return float((images - images.mean(0)).double().square().mean())
