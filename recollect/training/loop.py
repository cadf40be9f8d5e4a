"""The training loop: windows of steps, milestones, interventions and reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from recollect.checkpoints import load_checkpoint
from recollect.devices.precision import float32_precision
from recollect.training.interventions import intervene, rate_exhausted
from recollect.training.last_layer import solve_last_layer
from recollect.training.monitor import INTERRUPTED, PAUSED, Limits, Point
from recollect.training.outcome import Milestone, Progress, Training, format_loss
from recollect.training.rate_schedule import average_horizon, time_left
from recollect.training.run_folder import RunFolder
from recollect.training.state import RunState, Snapshot

WINDOW = 50  # steps between two measurements of the loss at first ...
WINDOWS_SO_FAR = 200  # ... and later this share of all steps so far ...
NEAR = 3.0  # ... unless the loss is within this factor of the next milestone
SHORT_WINDOW = 10  # steps, while the loss may fall by decades:
RESPONSE = 300  # for so many steps after an intervention ...
WITHIN_REACH = 100.0  # ... if the loss is within this factor of the next milestone
ROOM_TO_RESTART = 0.5  # an annealed rate restarts while less than this share of a limit is used
RATE_RISE = 2.0  # a rate that rises by this factor may raise the loss too
LONGEST_WINDOW = 1 / 20  # of a limit of seconds, while the rate is annealed for it
MARGIN = 0.95  # of the square root of a loss to reach by solving the last layer, to end surely below it


class TrainingLoop:
    """Trains a run to a list of losses, highest first; `clock` counts the seconds."""

    def __init__(
        self,
        state: RunState,
        folder: RunFolder,
        losses: list[float],
        limits: Limits,
        *,
        clock: Callable[[], float],
        report: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.state, self.folder = state, folder
        reached = {milestone.wanted for milestone in state.milestones}
        self.to_reach = [loss for loss in losses if loss not in reached]
        self.limits = replace(limits, pause=state.seconds + limits.pause)
        self._clock, self._report, self._stop = clock, report, stop
        self._started = clock() - state.seconds
        self._reported = 0  # lines of the log

    def run(self) -> Training:
        """Train until all losses are reached, a limit comes first, or the caller stops the run."""
        state = self.state
        if not state.steps:  # nothing worse than the initial weights counts as the best
            loss = state.stepper.measure(averaged=False)
            if not math.isfinite(loss):
                loss = math.inf
            state.best = replace(state.best, loss=loss)
        while self.to_reach:
            if ending := self._ending():
                return self._end(ending)
            self._set_rate()
            point, snapshot = self._run_window()
            self._take_milestones(snapshot)
            if self.to_reach and snapshot.loss <= state.solve_below:
                self._solve_last_layer(snapshot)
            self._assess(point)
            if self._report:
                self._report(self._progress(point))
            if self.folder.save_is_due:
                self.folder.save(state)
        return self._end("reached")

    def _ending(self) -> str | None:
        """Say why the run must stop now; None if it need not.

        A caller's wish waits for the end of a window: a resumed run then measures at the same steps, to the same bits.
        """
        if reason := self.limits.reached(self.state.seconds, self.state.steps) or rate_exhausted(self.state):
            return reason
        return INTERRUPTED if self._stop() else None

    def _set_rate(self) -> None:
        """Follow the learning rate schedule; restart it when it ended, a loss is still to reach and there is time."""
        state, limits = self.state, self.limits
        used = limits.share_used(state.seconds, state.steps)
        if state.annealing.finished(state.steps) and used < ROOM_TO_RESTART:
            state.annealing = state.annealing.restarted(state.steps)
            state.note(
                f"the learning rate was annealed to its end; it restarts, and is annealed over "
                f"{state.annealing.length} steps"
            )
        rate = state.peak_rate * state.annealing.factor(state.steps, state.seconds, limits)
        if rate > RATE_RISE * state.stepper.rate:  # a restart, or a later limit than before
            state.monitor.intervened(state.steps)
        state.stepper.set_rate(rate)
        steps_left = state.annealing.steps_left(state.steps, state.seconds, limits)
        if state.recipe.average_steps is not None:
            state.stepper.horizon = average_horizon(state.recipe.average_steps, state.steps, steps_left)

    def _run_window(self) -> tuple[Point, Snapshot]:
        """Take some steps; measure the average of the weights, and the weights if they may be better."""
        state, stepper = self.state, self.state.stepper
        deadline = self._deadline()
        loss = stepper.run(self._window_steps(), halt=lambda: self._clock() >= deadline)
        precision = stepper.monitoring_precision
        averaged = stepper.measure(averaged=True, precision=precision)
        better = Snapshot(averaged, stepper.average)
        if loss < averaged:  # a mean over the window does not say how good the last weights are
            last = stepper.measure(averaged=False, precision=precision)
            if last < averaged:
                better = Snapshot(last, stepper.weights)
        state.seconds = self._clock() - self._started
        return Point(state.seconds, state.steps, loss, averaged, stepper.rate), better

    def _window_steps(self) -> int:
        """Return the steps to the next measurement: few where the loss may pass a milestone soon."""
        state, steps = self.state, WINDOW
        since = state.steps - state.monitor.last_intervention
        above = state.best.loss / self.to_reach[0]
        if state.monitor.last_intervention and since < RESPONSE and above < WITHIN_REACH:
            steps = SHORT_WINDOW
        elif above >= NEAR:
            steps = max(WINDOW, state.steps // WINDOWS_SO_FAR)
        return math.ceil(min(steps, self.limits.steps - state.steps))

    def _deadline(self) -> float:
        """Return the time at which a window ends early: at a limit, or soon if the rate is annealed for one."""
        end = self._started + min(self.limits.seconds, self.limits.pause)
        if self.state.annealing.length is None:
            return end
        return min(end, self._clock() + LONGEST_WINDOW * self.limits.seconds)

    def _take_milestones(self, snapshot: Snapshot) -> None:
        """Keep the best weights; claim a milestone only if it holds in full precision."""
        state = self.state
        if snapshot.loss < state.best.loss:
            state.best = snapshot.copy()
        if state.best.loss > self.to_reach[0]:
            return
        with state.stepper.using(snapshot.weights):
            loss = state.stepper.measure(averaged=False)
            while self.to_reach and loss <= self.to_reach[0]:
                self._claim_milestone(loss)

    def _claim_milestone(self, loss: float, solved: str | None = None) -> None:
        """Write a checkpoint of the network as it is, then log it: what is reported is on disk.

        One window can pass two losses. Their checkpoints then hold the same weights, and the log says so.
        """
        state, wanted = self.state, self.to_reach.pop(0)
        same = [format_loss(m.wanted) for m in state.milestones if (m.steps, m.loss) == (state.steps, loss)]
        path = self.folder.save_milestone(state, loss, wanted, solved)
        state.milestones.append(Milestone(wanted, loss, state.steps, state.seconds, path))
        state.ahead = [milestone for milestone in state.ahead if milestone.wanted != wanted]
        details = f": {solved}" if solved else ""
        if same:
            details = f", with the same weights as {same[-1]}: one window passed both"
        state.note(f"reached {format_loss(wanted)} (measured {loss:.2e}){details}")

    def _solve_last_layer(self, snapshot: Snapshot) -> None:
        """Solve the last layer, and apply as much of the change as each milestone needs."""
        state, stepper = self.state, self.state.stepper
        with stepper.using(snapshot.weights):
            with float32_precision("ieee"):
                solution = solve_last_layer(state.network, state.images)
            before = stepper.measure(averaged=False)
            while solution is not None and self.to_reach:
                share = 1 - MARGIN * math.sqrt(min(1.0, self.to_reach[0] / before))
                solution.apply(share)
                loss = stepper.measure(averaged=False)
                if not loss <= self.to_reach[0]:
                    break
                state.best = Snapshot(loss, stepper.weights).copy()
                how = f"last layer solved by least squares from {before:.2e}, {share:.1%} of the change"
                self._claim_milestone(loss, how)

    def _assess(self, point: Point) -> None:
        """Judge the loss curve, raise the precision once the loss needs it, and intervene if the run goes wrong."""
        state = self.state
        verdict = state.monitor.judge(point)
        if not self.to_reach:
            return
        until = state.recipe.tf32_until
        if state.stepper.forward_precision == "tf32" and until is not None and point.loss < until:
            state.stepper.forward_precision = "split"
            state.note_precision(point.loss)
            state.note(f"forward pass in float32 from here, at {point.loss:.1e}; the backward pass stays in TF32")
        if state.recipe.interventions:
            intervene(state, verdict, point)

    def _progress(self, point: Point) -> Progress:
        state = self.state
        messages = tuple(state.log[self._reported :])
        self._reported = len(state.log)
        if not self.to_reach:
            return Progress(point, None, 0.0, None, messages)
        next_loss = self.to_reach[0]
        goal = max(next_loss, state.solve_below)  # solving the last layer takes no time
        seconds_left = time_left(state.annealing, state.monitor.history, goal, self.limits)
        return Progress(point, next_loss, seconds_left, self.to_reach[-1], messages)

    def _end(self, reason: str) -> Training:
        """Save the run, and leave the network with the best weights."""
        state, stepper = self.state, self.state.stepper
        self._keep_milestones_ahead()
        best = self._best_weights()
        with stepper.using(best):
            loss = stepper.measure(averaged=False)
        reached = not self.to_reach
        short_of = "" if reached else f", short of {format_loss(self.to_reach[-1])}"
        why = f"Train loss {loss:.2e} {reason} after {state.steps} steps, {state.seconds:.0f} s{short_of}."
        state.note(why)
        self.folder.save(state)  # with the last weights, not the best ones, so that a resumed run misses no step
        self.folder.draw(state)
        stepper.set_weights(best)
        state.network.eval()
        suspended = reason in (PAUSED, INTERRUPTED)
        if not suspended:
            self.folder.save_best(state, loss, reached)
        return Training(
            state.network, loss, state.milestones, reached, why, state.log, state.monitor.history,
            state.restarted_from, suspended, state.precision,
        )  # fmt: skip

    def _keep_milestones_ahead(self) -> None:
        """Count milestones that a killed run reached and this one, stopped sooner, did not reach again."""
        ahead = {milestone.wanted for milestone in self.state.ahead}
        self.state.milestones += self.state.ahead
        self.to_reach = [loss for loss in self.to_reach if loss not in ahead]

    def _best_weights(self) -> list[Tensor]:
        """Return the best weights of this process, or of a milestone that a killed one wrote after its last state."""
        state = self.state
        saved = min((m for m in state.milestones if m.path), key=lambda m: m.loss, default=None)
        if saved is None or saved.path is None or not saved.loss < state.best.loss:
            return state.best.weights
        loaded = load_checkpoint(saved.path, state.images.device).network.parameters()
        return [w for w, own in zip(loaded, state.network.parameters(), strict=True) if own.requires_grad]
