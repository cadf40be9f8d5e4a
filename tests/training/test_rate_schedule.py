"""The learning rate schedule."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.paper.store import Store
from recollect.training import Recipe
from recollect.training.loop import TrainingLoop
from recollect.training.monitor import Limits, Point
from recollect.training.rate_schedule import (
    FINAL_FACTOR,
    LOSS_POWER,
    SHARE_OF_LEFT,
    SHORTEST_AVERAGE,
    Annealing,
    Shape,
    average_horizon,
    time_left,
)
from recollect.training.run_folder import RunFolder
from recollect.training.state import RunState
from tests.training.small import StepClock, after_calls, messages, small_images, small_network, train

SHAPES: tuple[Shape, ...] = ("cosine", "linear")


def test_without_a_length_the_rate_stays() -> None:
    assert Annealing(None).factor(10**9, 1e9, Limits(1.0, 1)) == 1.0
    assert not Annealing(None).finished(10**9)


def test_the_rate_is_annealed_along_a_cosine() -> None:
    annealing = Annealing(100)
    assert annealing.factor(0, 0.0, Limits()) == 1.0
    assert math.isclose(annealing.factor(50, 0.0, Limits()), 0.5)
    assert annealing.factor(100, 0.0, Limits()) == FINAL_FACTOR


def test_or_along_a_line() -> None:
    annealing = Annealing(100, 10, shape="linear")
    assert [annealing.factor(steps, 0.0, Limits()) for steps in (10, 35, 85, 110)] == [1.0, 0.75, 0.25, FINAL_FACTOR]


def test_or_along_a_power_of_either() -> None:
    for shape in SHAPES:
        plain, squared = Annealing(100, shape=shape), Annealing(100, shape=shape, power=2.0)
        assert squared.factor(40, 0.0, Limits()) == pytest.approx(plain.factor(40, 0.0, Limits()) ** 2)


@given(
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(1, 500),
    st.floats(0, 100),
    st.floats(1, 100),
    st.sampled_from(SHAPES),
)
def test_it_never_rises_within_one_annealing(
    a: int, b: int, length: int, seconds: float, limit: float, shape: Shape
) -> None:
    early, late = sorted((a, b))
    limits, annealing = Limits(limit, 700), Annealing(length, shape=shape)
    assert 1 >= annealing.factor(early, seconds, limits) >= annealing.factor(late, seconds, limits) >= FINAL_FACTOR


def test_a_limit_before_its_end_speeds_it_up() -> None:
    assert Annealing(1000).factor(50, 0.0, Limits(steps=100)) == Annealing(100).factor(50, 0.0, Limits())
    assert Annealing(1000).factor(0, 5.0, Limits(seconds=10)) == Annealing(100).factor(50, 0.0, Limits())


def test_after_a_warm_restart_it_is_twice_as_long() -> None:
    assert Annealing(100, 40).finished(140)
    assert Annealing(100, 40).restarted(140) == Annealing(200, 140)
    assert Annealing(100, 40, shape="linear").restarted(140) == Annealing(200, 140, shape="linear")


def test_the_steps_left() -> None:
    assert Annealing(None).steps_left(10, 1.0, Limits(2.0)) == math.inf
    assert Annealing(100, 40).steps_left(60, 1.0, Limits()) == 80
    assert Annealing(100).steps_left(20, 1.0, Limits(4.0)) == 60  # at the pace so far
    assert Annealing(100).steps_left(20, 1.0, Limits(steps=50)) == pytest.approx(30)
    assert Annealing(100).steps_left(120, 1.0, Limits()) == 0
    assert Annealing(100).steps_left(0, 0.0, Limits(4.0)) == 100


def test_the_average_reaches_back_further_as_a_run_goes_on() -> None:
    behind = (0, 1999, 3999, 4000, 8000, 100_000)
    assert [average_horizon(100, steps, math.inf) for steps in behind] == [100, 100, 100, 200, 400, 3200]


def test_and_less_far_towards_the_end_of_annealing() -> None:
    left = (60_000, 20_000, 10_000, 5_000, 2_500, 1_250, 100, 0)
    assert [average_horizon(100, 50_000, steps) for steps in left] == [800, 400, 200, 100, 50, 25, 6, 6]


@given(st.integers(1, 500), st.integers(0, 10**6), st.floats(0, 10**6))
def test_an_average_is_never_longer_than_its_share_of_the_annealing(first: int, behind: int, left: float) -> None:
    assert 1 <= average_horizon(first, behind, left) <= max(SHORTEST_AVERAGE, SHARE_OF_LEFT * left)


@pytest.mark.parametrize(("anneal_steps", "first", "last"), [(800, 16, 8), (None, 16, 32)])
def test_a_run_averages_over_the_horizon(anneal_steps: int | None, first: int, last: int) -> None:
    """Fewer steps towards the end of annealing, more and more at a constant rate."""
    recipe = Recipe(rate=1e-3, average_steps=16, anneal_steps=anneal_steps, solve_below=None)
    state = RunState.start(small_network(), small_images(6), recipe, torch.device("cpu"))
    clock, horizons = StepClock(state.network, 0.01), []
    loop = TrainingLoop(
        state, RunFolder(None, clock), [1e-30], Limits(steps=800), clock=clock,
        report=lambda _: horizons.append(state.stepper.horizon),
    )  # fmt: skip
    loop.run()
    assert (horizons[0], horizons[-1]) == (first, last)
    assert horizons == sorted(horizons, reverse=first > last)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_follows_its_power(shape: Shape) -> None:
    recipe = Recipe(rate=1e-3, anneal_steps=400, anneal_shape=shape, anneal_power=2.0, solve_below=None)
    done = train(images=small_images(6), until=1e-30, max_steps=390, recipe=recipe)
    annealing = Annealing(400, shape=shape, power=2.0)
    begun = [0, *(p.steps for p in done.history[:-1])]
    assert [p.rate for p in done.history] == [1e-3 * annealing.factor(steps, 0.0, Limits(steps=390)) for steps in begun]


def test_a_rate_is_annealed_for_a_limit_also_if_steps_are_slow() -> None:
    recipe = Recipe(rate=1e-3, anneal_steps=10**6, solve_below=None)
    done = train(images=small_images(6), until=1e-30, max_seconds=1.5, recipe=recipe, seconds_per_pass=0.02)
    assert len(done.history) > 8  # fifty steps would take all of it
    begun = [(0, 0.0), *((p.steps, p.seconds) for p in done.history[:-1])]
    factors = [Annealing(10**6).factor(steps, seconds, Limits(seconds=1.5)) for steps, seconds in begun]
    assert [p.rate for p in done.history] == [recipe.rate * factor for factor in factors]
    assert factors[-1] < 0.02


def test_a_run_is_annealed_and_restarts() -> None:
    recipe = Recipe(rate=1e-4, anneal_steps=100, solve_below=None)
    options: dict[str, Any] = {"max_steps": 10**6, "max_seconds": 2, "seconds_per_pass": 1e-3, "stop": after_calls(4)}
    done = train(until=1e-12, milestones=(), recipe=recipe, **options)
    rates = [p.rate for p in done.history]
    assert rates[:2] == [1e-4, 5e-5]
    assert rates[2] > rates[1]
    assert messages(done, "it restarts, and is annealed over 200 steps")


TRAININGS = Store(Path(__file__).parents[2] / "results/paper/full").trainings()
ANNEALED = [facts for facts in TRAININGS if facts["recipe"]["anneal_steps"] and facts["milestones"]]


def estimates(facts: dict[str, Any]) -> Iterator[tuple[float, float | None]]:
    """The true time left and its estimate, while from a fifth to nine tenths of the time to each milestone are over."""
    recipe, limits = facts["recipe"], Limits(seconds=facts["limit_seconds"])
    annealing = Annealing(recipe["anneal_steps"], shape=recipe["anneal_shape"], power=recipe["anneal_power"])
    for milestone in (m for m in facts["milestones"] if m["steps"] <= recipe["anneal_steps"]):
        history = [Point(*values) for values in facts["history"]]
        for i, point in enumerate(history, 1):
            if 0.2 < point.seconds / milestone["seconds"] < 0.9:
                yield (
                    milestone["seconds"] - point.seconds,
                    time_left(annealing, history[:i], milestone["wanted"], limits),
                )


@pytest.mark.parametrize("facts", ANNEALED, ids=lambda facts: facts["training"])
def test_the_time_left_is_that_of_recorded_runs(facts: dict[str, Any]) -> None:
    """Half of the estimates within a factor of 1.6, all but a few within 2.5."""
    factors = [
        math.inf if said is None else max(truth / max(said, 1e-9), said / truth) for truth, said in estimates(facts)
    ]
    assert len(factors) > 4
    assert statistics.median(factors) < 1.6
    assert statistics.quantiles(factors, n=20)[-1] < 2.5


def test_the_time_left_to_a_loss() -> None:
    """It is right if the loss is that power of the rate; it is zero behind, and unknown beyond the annealing."""
    for annealing in (Annealing(1000), Annealing(1000, shape="linear"), Annealing(1000, power=2.0)):
        now = Point(seconds=30, steps=300, loss=annealing.factor(300, 30, Limits()) ** LOSS_POWER, averaged=1, rate=1)
        for then in (400, 800):
            loss = annealing.factor(then, 0, Limits()) ** LOSS_POWER
            assert annealing.seconds_to(loss, now, Limits()) == pytest.approx((then - 300) / 10)
            assert annealing.seconds_to(loss, now, Limits(seconds=1000)) == pytest.approx((then - 300) / 10)
        assert annealing.seconds_to(2 * now.loss, now, Limits()) == 0
        assert annealing.seconds_to(1e-7, now, Limits()) is None
    assert Annealing(None).seconds_to(1e-3, now, Limits()) is None
    history = [replace(now, seconds=steps / 10, steps=steps, loss=1 / steps) for steps in (50, 100, 150, 200)]
    assert time_left(Annealing(None), history, 1 / 300, Limits()) == pytest.approx(10)  # as it went so far
    assert time_left(Annealing(1000), history, 1 / 300, Limits()) == pytest.approx(10)  # sooner than by the annealing
    assert time_left(Annealing(210), history, 1 / 300, Limits()) == Annealing(210).seconds_to(
        1 / 300, history[-1], Limits()
    )
    assert time_left(Annealing(200), history, 1 / 300, Limits()) is None  # it is over
    assert time_left(Annealing(None), history, 1 / 300, Limits(seconds=31)) == pytest.approx(10)
    assert time_left(Annealing(None), history, 1 / 300, Limits(seconds=29)) is None  # beyond the limit
    assert time_left(Annealing(None), history, 1 / 300, Limits(steps=290)) is None
    assert annealing.seconds_to(1e-3, replace(now, loss=math.nan, averaged=math.nan), Limits()) is None
