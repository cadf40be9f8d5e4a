"""The fall of the rate."""

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from recollect.training import Recipe, train_to_loss
from recollect.training.monitor import Limits, Point
from recollect.training.rate_schedule import FLOOR, OF_LEFT, OF_RATE, SHORTEST, Fall, averaged_over, time_left
from recollect.training.stepper import Stepper
from tests.training.small import small_images, small_network


def test_without_a_length_the_rate_stays() -> None:
    assert Fall(None).share(10**9, 1e9, Limits(1.0, 1)) == 1.0
    assert not Fall(None).over(10**9)


def test_it_falls_along_a_cosine() -> None:
    fall = Fall(100)
    assert fall.share(0, 0.0, Limits()) == 1.0
    assert math.isclose(fall.share(50, 0.0, Limits()), 0.5)
    assert fall.share(100, 0.0, Limits()) == FLOOR


def test_or_along_a_line() -> None:
    fall = Fall(100, 10, straight=True)
    assert [fall.share(steps, 0.0, Limits()) for steps in (10, 35, 85, 110)] == [1.0, 0.75, 0.25, FLOOR]


def test_or_along_a_power_of_either() -> None:
    for straight in (False, True):
        plain, squared = Fall(100, straight=straight), Fall(100, straight=straight, power=2.0)
        assert squared.share(40, 0.0, Limits()) == pytest.approx(plain.share(40, 0.0, Limits()) ** 2)


@given(
    st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 500), st.floats(0, 100), st.floats(1, 100), st.booleans()
)
def test_it_never_rises_within_one_fall(
    a: int, b: int, length: int, seconds: float, limit: float, straight: bool
) -> None:
    early, late = sorted((a, b))
    limits, fall = Limits(limit, 700), Fall(length, straight=straight)
    assert 1 >= fall.share(early, seconds, limits) >= fall.share(late, seconds, limits) >= FLOOR


def test_a_limit_before_its_end_hastens_it() -> None:
    assert Fall(1000).share(50, 0.0, Limits(steps=100)) == Fall(100).share(50, 0.0, Limits())
    assert Fall(1000).share(0, 5.0, Limits(seconds=10)) == Fall(100).share(50, 0.0, Limits())


def test_the_next_is_twice_as_long() -> None:
    assert Fall(100, 40).over(140)
    assert Fall(100, 40).again(140) == Fall(200, 140)
    assert Fall(100, 40, straight=True).again(140) == Fall(200, 140, straight=True)


def test_what_is_left_of_it() -> None:
    assert Fall(None).left(10, 1.0, Limits(2.0)) == math.inf
    assert Fall(100, 40).left(60, 1.0, Limits()) == 80
    assert Fall(100).left(20, 1.0, Limits(4.0)) == 60  # at the pace so far
    assert Fall(100).left(20, 1.0, Limits(steps=50)) == pytest.approx(30)
    assert Fall(100).left(120, 1.0, Limits()) == 0
    assert Fall(100).left(0, 0.0, Limits(4.0)) == 100


def test_the_average_reaches_back_further_as_a_run_goes_on() -> None:
    behind = (0, 1999, 3999, 4000, 8000, 100_000)
    assert [averaged_over(100, steps, math.inf) for steps in behind] == [100, 100, 100, 200, 400, 3200]


def test_and_less_far_towards_the_end_of_a_fall() -> None:
    left = (60_000, 20_000, 10_000, 5_000, 2_500, 1_250, 100, 0)
    assert [averaged_over(100, 50_000, steps) for steps in left] == [800, 400, 200, 100, 50, 25, 6, 6]


@given(st.integers(1, 500), st.integers(0, 10**6), st.floats(0, 10**6))
def test_an_average_is_never_longer_than_its_share_of_a_fall(first: int, behind: int, left: float) -> None:
    assert 1 <= averaged_over(first, behind, left) <= max(SHORTEST, OF_LEFT * left)


def test_a_run_averages_over_fewer_steps_towards_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The horizon that the steps are taken with, in a run with a fall and in one without."""
    seen: dict[int | None, list[int]] = {}
    plain = Stepper.run
    for fall in (800, None):
        horizons = seen[fall] = []

        def noted(stepper: Stepper, steps: int, halt: Callable[[], bool], into: list[int] = horizons) -> float:
            into.append(stepper.horizon)
            return plain(stepper, steps, halt)

        monkeypatch.setattr(Stepper, "run", noted)
        recipe = Recipe(optimizer="muon", rate=1e-3, average=16, fall=fall, finish_from=None)
        train_to_loss(small_network(), small_images(6), until=1e-30, max_steps=800, recipe=recipe)
    assert set(seen[None]) == {16, 32}
    assert seen[800][0] == 16
    assert seen[800][-1] == 8
    assert seen[800] == sorted(seen[800], reverse=True)


@pytest.mark.parametrize("straight", [False, True])
def test_a_run_follows_its_power(straight: bool) -> None:
    recipe = Recipe(rate=1e-3, fall=400, straight=straight, fall_power=2.0, finish_from=None)
    done = train_to_loss(small_network(), small_images(6), until=1e-30, max_steps=390, recipe=recipe)
    fall = Fall(400, straight=straight, power=2.0)
    begun = [0, *(p.steps for p in done.history[:-1])]
    assert [p.rate for p in done.history] == [1e-3 * fall.share(steps, 0.0, Limits(steps=390)) for steps in begun]


def test_a_rate_falls_for_a_limit_also_where_steps_are_slow() -> None:
    class Slow(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            time.sleep(0.02)
            return super().forward(x)

    recipe = Recipe(rate=1e-3, fall=10**6, finish_from=None)
    done = train_to_loss(Slow(small_network()), small_images(6), until=1e-30, max_seconds=1.5, recipe=recipe)
    assert len(done.history) > 8  # fifty steps would take all of it
    begun = [(0, 0.0), *((p.steps, p.seconds) for p in done.history[:-1])]
    shares = [Fall(10**6).share(steps, seconds, Limits(seconds=1.5)) for steps, seconds in begun]
    assert [p.rate for p in done.history] == [recipe.rate * share for share in shares]
    assert shares[-1] < 0.5  # far below, but where the machine stands still for a while at the end


def test_a_run_follows_it_and_starts_another() -> None:
    recipe = Recipe(rate=1e-4, fall=100, finish_from=None)
    done = train_to_loss(small_network(), small_images(), 1e-12, (), recipe=recipe, max_steps=10**6, max_seconds=2)
    rates = [p.rate for p in done.history]
    assert rates[:2] == [1e-4, 5e-5]
    assert rates[2] > rates[1]
    assert any("goes up again, and falls over 200 steps" in line for line in done.log)


TRAININGS = (Path(__file__).parents[2] / "results/paper/full/trainings").glob("*.json")
FALLING = [
    path
    for path in sorted(TRAININGS)
    if (facts := json.loads(path.read_text()))["recipe"].get("fall") and facts["milestones"]
]


def estimates(facts: dict[str, Any]) -> Iterator[tuple[float, float | None]]:
    """For each milestone of a recorded run, from a fifth to nine tenths of the way: the true time left, and what would
    have been said."""
    recipe, limits = facts["recipe"], Limits(seconds=facts["limit_seconds"])
    fall = Fall(recipe["fall"], straight=recipe.get("straight", False), power=recipe.get("fall_power", 1.0))
    for milestone in (m for m in facts["milestones"] if m["steps"] <= recipe["fall"]):
        history = [Point(*values) for values in facts["history"]]
        for i, point in enumerate(history, 1):
            if 0.2 < point.seconds / milestone["seconds"] < 0.9:
                yield milestone["seconds"] - point.seconds, time_left(fall, history[:i], milestone["wanted"], limits)


@pytest.mark.parametrize("path", FALLING, ids=lambda path: path.stem)
def test_the_time_left_is_that_of_recorded_runs(path: Path) -> None:
    """Half of the estimates within a factor of 1.6, all but a few within 2.5."""
    facts = json.loads(path.read_text())
    factors = [
        math.inf if said is None else max(truth / max(said, 1e-9), said / truth) for truth, said in estimates(facts)
    ]
    assert len(factors) > 4
    assert statistics.median(factors) < 1.6
    assert statistics.quantiles(factors, n=20)[-1] < 2.5


def test_the_time_left_to_a_loss() -> None:
    """On a loss that is that power of the rate's share it is right; behind is no time, beyond the fall is unknown."""
    for fall in (Fall(1000), Fall(1000, straight=True), Fall(1000, power=2.0)):
        now = Point(seconds=30, steps=300, loss=fall.share(300, 30, Limits()) ** OF_RATE, averaged=1, rate=1)
        for then in (400, 800):
            loss = fall.share(then, 0, Limits()) ** OF_RATE
            assert fall.seconds_to(loss, now, Limits()) == pytest.approx((then - 300) / 10)
            assert fall.seconds_to(loss, now, Limits(seconds=1000)) == pytest.approx((then - 300) / 10)
        assert fall.seconds_to(2 * now.loss, now, Limits()) == 0
        assert fall.seconds_to(1e-7, now, Limits()) is None
    assert Fall(None).seconds_to(1e-3, now, Limits()) is None
    history = [replace(now, seconds=steps / 10, steps=steps, loss=1 / steps) for steps in (50, 100, 150, 200)]
    assert time_left(Fall(None), history, 1 / 300, Limits()) == pytest.approx(10)  # as it went so far
    assert time_left(Fall(1000), history, 1 / 300, Limits()) == pytest.approx(10)  # sooner than by the fall
    assert time_left(Fall(210), history, 1 / 300, Limits()) == Fall(210).seconds_to(1 / 300, history[-1], Limits())
    assert time_left(Fall(200), history, 1 / 300, Limits()) is None  # it is over
    assert time_left(Fall(None), history, 1 / 300, Limits(seconds=31)) == pytest.approx(10)
    assert time_left(Fall(None), history, 1 / 300, Limits(seconds=29)) is None  # beyond the limit
    assert time_left(Fall(None), history, 1 / 300, Limits(steps=290)) is None
    assert fall.seconds_to(1e-3, replace(now, loss=math.nan, averaged=math.nan), Limits()) is None
