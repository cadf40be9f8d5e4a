"""One training run: steps, looks, interventions, milestones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.checkpoints import load_checkpoint
from recollect.devices.precision import apply_checked, float32_precision
from recollect.errors import InputError
from recollect.images import Images
from recollect.training.interventions import react, restarted_from, too_slow
from recollect.training.last_layer import can_finish, solve_last_layer
from recollect.training.monitor import COLLAPSED, COLLAPSED_FALLING, INTERRUPTED, PATIENCE, PAUSED, Limits, Point, Watch
from recollect.training.outcome import Milestone, Progress, Training, spell
from recollect.training.rate_schedule import Fall, averaged_over, time_left
from recollect.training.recipe import Recipe
from recollect.training.run_folder import Keeper
from recollect.training.stepper import Stepper

WINDOW, LOOKS = 50, 200  # steps between two looks at the loss at first; later a LOOKS-th of all that are behind ...
NEAR = 3.0  # ... but where the loss is within this factor of the next milestone
ROOM = 0.5  # a rate that fell goes up again while less than this share of a limit is used
RISE = 2.0  # where the rate goes up by this factor the loss may rise too
LONGEST = 1 / 20  # of a limit of seconds that a window takes at most while the rate falls for it
FALL_PATIENCE = 2  # a half of a short fall without progress is enough to act


class Run:
    """All that changes while a network is trained, and what is done about it."""

    def __init__(self, network: nn.Module, images: Images, recipe: Recipe, folder: Path | None, device: torch.device):
        self.network, self.recipe, self.data_hash = network, recipe, images.hash
        self.images = images.pixels.to(device)
        if device.type == "cuda" and any(isinstance(m, nn.Conv2d) for m in network.modules()):
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        _check_fit(network, self.images[:1])
        self.stepper = Stepper(network, self.images, recipe)
        self.top_rate = recipe.rate  # of which the rate is a share
        self.fall = Fall(recipe.fall, straight=recipe.straight, power=recipe.fall_power)
        patience = min(PATIENCE, recipe.fall // FALL_PATIENCE) if recipe.fall else PATIENCE
        collapsed = COLLAPSED_FALLING if recipe.fall else COLLAPSED
        self.watch = Watch(_constant_loss(self.images), patience, collapsed)
        self.log: list[str] = []
        self.told = 0  # lines of the log that were reported
        self.seconds, self.tries = 0.0, 0
        self.wanted: list[float] = []
        state_bytes = 4 * sum(w.nbytes for w in self.stepper.weights)  # weights, average, best, momentum
        self.keeper = Keeper(folder, state_bytes)
        self.best_loss, self.best_weights = math.inf, [w.detach().clone() for w in self.stepper.weights]
        self.precision: list[dict[str, Any]] = []  # what ran in which precision, from which step on
        self._note_precision(None)
        self.finish_from = (recipe.finish_from or 0.0) if can_finish(network, self.images) else 0.0
        self.milestones: list[Milestone] = self.keeper.resume(self)

    @property
    def folder(self) -> Path | None:
        return self.keeper.folder

    @property
    def steps(self) -> int:
        return self.stepper.steps

    def train(
        self,
        wanted: list[float],
        limits: Limits,
        report: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Training:
        self.wanted = [w for w in wanted if w not in {m.wanted for m in self.milestones}]
        started, limits = time.monotonic() - self.seconds, replace(limits, pause=self.seconds + limits.pause)
        if not self.steps:  # nothing worse than where it started is ever gone back to
            self.best_loss = _or_infinite(self.stepper.measure(averaged=False))
        while self.wanted:
            if end := limits.reached(self.seconds, self.steps) or too_slow(self) or (INTERRUPTED if stop() else None):
                return self._end(end)
            self._follow_fall(limits)
            point, here = self._window(started, limits, stop)
            self._take_milestones(here)
            if self.wanted and here.loss <= self.finish_from:
                self._finish(here)
            self._react(point)
            if report:
                report(self._progress(point, limits))
            self.keeper.save_if_due(self)
        return self._end("reached")

    def _follow_fall(self, limits: Limits) -> None:
        """Set the rate; start another fall when it ended, the goal is still ahead and there is time."""
        if self.fall.over(self.steps) and limits.used(self.seconds, self.steps) < ROOM:
            self.fall = self.fall.again(self.steps)
            self.say(f"the rate fell to nothing; it goes up again, and falls over {self.fall.length} steps")
        rate = self.top_rate * self.fall.share(self.steps, self.seconds, limits)
        if rate > RISE * self.stepper.rate:  # another fall, or a later limit than before
            self.watch.acted(self.steps)
        self.stepper.set_rate(rate)
        left = self.fall.left(self.steps, self.seconds, limits)
        self.stepper.horizon = averaged_over(self.recipe.average, self.steps, left)

    def _window(self, started: float, limits: Limits, stop: Callable[[], bool]) -> tuple[Point, Here]:
        """Some steps, and a look at where they led: the better of weights and average, each measured."""
        near = self.best_loss < NEAR * self.wanted[0]
        steps = WINDOW if near else max(WINDOW, self.steps // LOOKS)
        longest = LONGEST * limits.seconds if self.fall.length else math.inf
        deadline = min(started + min(limits.seconds, limits.pause), time.monotonic() + longest)
        loss = self.stepper.run(
            int(min(steps, limits.steps - self.steps)), halt=lambda: time.monotonic() >= deadline or stop()
        )
        averaged = self.stepper.measure(averaged=True, precision=self.stepper.measuring_precision)
        here = Here(averaged, self.stepper.average)
        if loss < averaged:  # the mean over a window does not tell how good the weights at its end are
            now = self.stepper.measure(averaged=False, precision=self.stepper.measuring_precision)
            here = Here(now, self.stepper.weights) if now < averaged else here
        self.seconds = time.monotonic() - started
        return Point(self.seconds, self.steps, loss, averaged, self.stepper.rate), here

    def _take_milestones(self, here: Here) -> None:
        """Keep the best weights; claim a milestone only on a full-precision measurement."""
        if here.loss < self.best_loss:
            self.best_loss, self.best_weights = here.loss, [w.detach().clone() for w in here.weights]
        if self.best_loss > self.wanted[0]:
            return
        with self.stepper.using(here.weights):
            loss = self.stepper.measure(averaged=False)
            while self.wanted and loss <= self.wanted[0]:
                self._claim(loss)

    def _claim(self, loss: float, finish: str | None = None) -> None:
        """Write the network as it stands, then say so: what is reported is on disk."""
        wanted = self.wanted.pop(0)
        path = self.keeper.milestone(self, loss, wanted, finish)
        self.milestones.append(Milestone(wanted, loss, self.steps, self.seconds, path))
        self.say(f"reached {spell(wanted)} (measured {loss:.2e}){f': {finish}' if finish else ''}")

    def _finish(self, here: Here) -> None:
        """Solve the last layer exactly, and take as much of the change as each milestone asks for."""
        with self.stepper.using(here.weights):
            with float32_precision("ieee"):
                change = solve_last_layer(self.network, self.images)
            start = self.stepper.measure(averaged=False)
            while change is not None and self.wanted:
                share = 1 - 0.95 * math.sqrt(min(1.0, self.wanted[0] / start))  # 0.95: to be surely below
                change.apply(share)
                loss = self.stepper.measure(averaged=False)
                if not loss <= self.wanted[0]:
                    break
                self.best_loss, self.best_weights = loss, [w.detach().clone() for w in self.stepper.weights]
                self._claim(loss, f"last layer solved by least squares from {start:.2e}, {share:.1%} of the change")

    def _react(self, point: Point) -> None:
        """Judge where the run is, and do something about it where it is not well."""
        verdict = self.watch.judge(point)
        if not self.wanted:
            return
        if self.stepper.forward_precision == "tf32" and point.loss < self.recipe.tf32_until:
            self.stepper.forward_precision = "split"
            self._note_precision(point.loss)
            self.say(f"forward pass in float32 from here, at {point.loss:.1e}; the backward pass stays in TF32")
        react(self, verdict, point)

    def _progress(self, point: Point, limits: Limits) -> Progress:
        goal = self.wanted[0] if self.wanted else None
        left = time_left(self.fall, self.watch.history, max(goal, self.finish_from), limits) if goal else 0.0
        said, self.told = tuple(self.log[self.told :]), len(self.log)
        return Progress(point, goal, left, self.wanted[-1] if self.wanted else None, said)

    def _end(self, how: str) -> Training:
        best = self._best_weights()
        with self.stepper.using(best):
            loss = self.stepper.measure(averaged=False)
        reached = not self.wanted
        goal = "" if reached else f", short of {spell(self.wanted[-1])}"
        why = f"Train loss {loss:.2e} {how} after {self.steps} steps, {self.seconds:.0f} s{goal}."
        self.say(why)
        self.keeper.save(self)  # with the weights it had, not the best ones: whoever goes on from here misses no step
        self.keeper.draw(self)
        self.stepper.set_weights(best)
        self.network.eval()
        for_now = how in (PAUSED, INTERRUPTED)
        if not for_now:
            self.keeper.best(self, loss, reached)
        return Training(
            self.network, loss, self.milestones, reached, why, self.log, self.watch.history, restarted_from(self),
            for_now,
        )  # fmt: skip

    def _best_weights(self) -> list[Tensor]:
        """The best of this process, or of a milestone that a killed one wrote after its last state."""
        on_disk = min((m for m in self.milestones if m.path), key=lambda m: m.loss, default=None)
        if on_disk is None or on_disk.path is None or not on_disk.loss < self.best_loss:
            return self.best_weights
        return list(load_checkpoint(on_disk.path, self.images.device).network.parameters())

    def say(self, words: str) -> None:
        self.log.append(f"[{self.seconds:.1f} s, step {self.steps}] {words}")

    def _note_precision(self, loss: float | None) -> None:
        now = {"step": self.steps, "seconds": round(self.seconds, 3), "loss": loss}
        self.precision.append({**now, **self.stepper.precision()})


@dataclass(frozen=True, eq=False)
class Here:
    """Where a window ended: the better of weights and average, with its loss over all images."""

    loss: float
    weights: list[Tensor]


def _or_infinite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _constant_loss(images: Tensor) -> float:
    """The loss of the best constant output, the mean image."""
    return float((images - images.mean(0)).double().square().mean())


@torch.no_grad()
def _check_fit(network: nn.Module, image: Tensor) -> None:
    """A network for other images is refused before the first step."""
    try:
        apply_checked(network, image)
    except RuntimeError as error:
        size = "x".join(map(str, image.shape[1:]))
        raise InputError(f"The network does not take these images of {size}: {error}") from None
