"""Windows of steps, limits, pauses, precision and the time left."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import FullyConnected
from recollect.checkpoints import load_checkpoint, load_checkpoint_about
from recollect.training import BEST, Progress, Recipe, Training
from recollect.training.loop import WINDOW, TrainingLoop
from recollect.training.monitor import Limits
from recollect.training.outcome import format_loss
from recollect.training.rate_schedule import Annealing, time_left
from recollect.training.run_folder import RunFolder
from recollect.training.state import RunState
from tests.training.small import RECIPE, StepClock, after_calls, messages, small_images, small_network, train, vector


def make_loop(
    recipe: Recipe = RECIPE, folder: Path | None = None, until: float = 1e-8, limits: Limits | None = None
) -> TrainingLoop:
    state = RunState.start(small_network(), small_images(), recipe, torch.device("cpu"))
    clock = StepClock(state.network, 0.01)
    return TrainingLoop(state, RunFolder(folder, clock), [until], limits or Limits(), clock=clock)


def test_the_switch_from_tf32_is_noted_with_its_step(tmp_path: Path) -> None:
    """On a CPU the switch changes nothing, but it is made and recorded as on a GPU."""
    loop = make_loop(Recipe(rate=2e-3, tf32_until=1e-2, average_steps=5), tmp_path, until=1e-4)
    loop.state.stepper.forward_precision = "tf32"
    loop.state.precision.clear()
    loop.state.note_precision(None)
    done = loop.run()
    steps = load_checkpoint_about(tmp_path / "loss-1e-04.safetensors")["precision"]["steps"]
    assert [s["forward"] for s in steps] == ["TF32", "float32 as three TF32 products"]
    assert steps[0]["step"] == 0 < steps[1]["step"] < done.milestones[0].steps
    assert 1e-4 < steps[1]["loss"] < 1e-2
    assert messages(done, "forward pass in float32 from here")


def test_losses_that_one_window_passes_share_their_weights_and_the_log_says_so(tmp_path: Path) -> None:
    close = [1e-3, 9.99e-4]
    done = train(tmp_path, recipe=Recipe(rate=4e-3), until=close[1], milestones=close[:1])
    first, second = done.milestones
    assert [first.wanted, second.wanted] == close
    assert (first.steps, first.loss) == (second.steps, second.loss)
    assert first.path is not None
    assert second.path is not None
    assert torch.equal(*(vector(load_checkpoint(path).network) for path in (first.path, second.path)))
    (line,) = messages(done, "one window passed both")
    assert f"reached {format_loss(close[1])} " in line
    assert line.endswith("with the same weights as 1e-03: one window passed both")
    apart = train(recipe=Recipe(rate=1e-3), until=1e-3, milestones=(1e-2,))
    assert apart.milestones[0].steps < apart.milestones[1].steps
    assert not messages(apart, "one window passed both")


def test_the_time_left_ends_where_the_last_layer_is_solved() -> None:
    """Solving takes no time, so losses below that point are as near as the point itself."""
    estimates: list[list[float | None]] = []
    for until in (1e-5, 1e-8):
        reports: list[Progress] = []
        slow = replace(RECIPE, rate=2e-3)  # enough windows for an estimate
        train(until=until, milestones=(), recipe=slow, seconds_per_pass=0.01, report=reports.append)
        estimates.append([progress.seconds_left for progress in reports[:-1]])
    assert estimates[0] == estimates[1]
    assert sum(seconds is not None for seconds in estimates[0]) > 4


def test_the_time_left_while_the_rate_is_annealed_is_that_of_the_schedule() -> None:
    reports: list[Progress] = []
    recipe = Recipe("muon", rate=0.02, anneal_steps=400, solve_below=None)
    network = FullyConnected((1, 8, 8), layers=4, width=64)
    train(network=network, recipe=recipe, max_steps=400, report=reports.append, seconds_per_pass=0.01)
    known = 0
    for i, progress in enumerate(reports[:-1], 1):
        if progress.next_milestone:
            history = [earlier.point for earlier in reports[:i]]
            expected = time_left(Annealing(400), history, progress.next_milestone, Limits(steps=400))
            assert progress.seconds_left == expected
            known += expected is not None
    assert known > 4


def test_weights_that_are_thrown_off_by_the_last_step_of_a_window_are_never_the_best() -> None:
    """The mean over a window may be low although the weights after its last step are lost."""
    loop = make_loop(limits=Limits(steps=250))
    stepper, taken = loop.state.stepper, []

    def throw_off(*_: Any) -> None:
        taken.append(1)
        if len(taken) == 250:
            with torch.no_grad():
                stepper.weights[-1].add_(1.0)

    stepper.optimizer.adam.register_step_post_hook(throw_off)  # type: ignore[union-attr]
    done = loop.run()
    *before, last = done.history
    assert last.loss < min(p.best for p in before)  # all fifty losses were fine
    assert last.loss < last.averaged
    assert done.loss == make_loop(limits=Limits(steps=200)).run().loss  # the best weights are those before


def test_windows_grow_with_the_steps_except_near_a_milestone() -> None:
    far, near = make_loop(limits=Limits(steps=40_600)), make_loop(until=0.01, limits=Limits(steps=40_600))
    for loop in (far, near):
        loop.state.stepper.steps = 40_000
    assert [p.steps for p in far.run().history] == [40_200, 40_401, 40_600]
    near.state.best = replace(near.state.best, loss=0.02)
    assert [p.steps for p in near.run().history[:3]] == [40_050, 40_100, 40_150]


def test_at_the_time_limit_it_says_how_far_it_got() -> None:
    done = train(max_seconds=2, until=1e-12, recipe=Recipe(solve_below=None), seconds_per_pass=0.01)
    assert "stopped at the limit of 2 s" in done.why
    assert 2 <= done.history[-1].seconds < 2.1


def test_a_limit_of_seconds_ends_a_window_of_slow_steps() -> None:
    done = train(max_seconds=0.3, seconds_per_pass=0.05)
    assert [p.steps for p in done.history] == [5]  # a pass for the initial loss, and one a step


@pytest.mark.parametrize(("limit", "restarts"), [(150, False), (1000, True)])
def test_the_schedule_restarts_if_there_is_time(limit: int, restarts: bool) -> None:
    learns_at_once = FullyConnected((1, 8, 8), layers=4, width=64)
    done = train(network=learns_at_once, recipe=replace(RECIPE, anneal_steps=100, solve_below=None), max_steps=limit)
    assert bool(messages(done, "it restarts")) == restarts
    later = [p.rate for p in done.history if p.steps > 100]
    assert (max(later) > 0.1 * RECIPE.rate) == restarts


def test_a_pause_is_no_limit(tmp_path: Path) -> None:
    """The rate is not annealed for a pause, and the same call continues the run."""
    recipe = replace(RECIPE, anneal_steps=10**6, solve_below=None)
    first = train(tmp_path, until=1e-5, recipe=recipe, pause_after=2, seconds_per_pass=0.01)
    assert first.why.startswith(f"Train loss {first.loss:.2e} paused after")
    assert first.suspended
    assert first.history[-1].rate > 0.99 * RECIPE.rate
    assert not (tmp_path / BEST).exists()
    again = train(tmp_path, until=1e-12, recipe=recipe, pause_after=2, seconds_per_pass=0.01)
    assert 1.8 < again.history[-1].seconds - first.history[-1].seconds < 2.2
    assert again.history[-1].steps > first.history[-1].steps + 150


@pytest.fixture(scope="module")
def whole() -> Training:
    return train(max_steps=300)


@pytest.mark.parametrize("windows", [1, 3, 5])
def test_asked_to_stop_it_does_after_a_measurement_and_continues_to_the_same_bits(
    windows: int, whole: Training, tmp_path: Path
) -> None:
    first = train(tmp_path, max_steps=300, stop=after_calls(windows))
    assert first.why.startswith(f"Train loss {first.loss:.2e} interrupted after {windows * WINDOW} steps")
    assert first.suspended
    assert not (tmp_path / BEST).exists()
    resumed = train(tmp_path, max_steps=300)
    assert messages(resumed, f"step {windows * WINDOW}] resumed")
    assert torch.equal(vector(whole.network), vector(resumed.network))
    assert [(p.steps, p.averaged) for p in whole.history] == [(p.steps, p.averaged) for p in resumed.history]
