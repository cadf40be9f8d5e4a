import math

import pytest

from recollect import InputError
from recollect.training.monitor import COLLAPSED_WHILE_ANNEALING, PATIENCE, Limits, Monitor, Point, Verdict, seconds_to


def point(steps: int, loss: float, averaged: float | None = None) -> Point:
    return Point(steps / 100, steps, loss, loss if averaged is None else averaged, 1e-3)


def verdicts(losses: list[float], constant_loss: float = 0.05, every: int = 50) -> list[Verdict]:
    monitor = Monitor(constant_loss)
    return [monitor.judge(point((i + 1) * every, loss)) for i, loss in enumerate(losses)]


def test_a_falling_loss_is_fine() -> None:
    assert set(verdicts([0.04 / (i + 1) for i in range(200)])) == {Verdict.FINE}


def test_a_slow_but_steady_fall_is_fine() -> None:
    """Ten percent in each patience."""
    assert set(verdicts([1e-3 * 0.9 ** (50 * i / PATIENCE) for i in range(60)])) == {Verdict.FINE}


def test_a_plateau_is_seen_after_the_patience_and_not_before() -> None:
    seen = verdicts([1e-4] * 30)
    assert seen.index(Verdict.PLATEAU) == PATIENCE // 50
    assert set(seen[: PATIENCE // 50]) == {Verdict.FINE}


def test_late_in_a_long_run_patience_is_longer() -> None:
    monitor = Monitor(0.05)
    monitor.last_intervention = 100_000
    seen = [monitor.judge(point(100_000 + 50 * i, 1e-6)) for i in range(1, 300)]
    assert 10_000 <= 50 * (1 + seen.index(Verdict.PLATEAU)) <= 11_500


def test_no_better_than_a_constant_output_is_a_collapse() -> None:
    assert Verdict.COLLAPSED in verdicts([0.05] * 30)
    assert Verdict.COLLAPSED in verdicts([0.03] * 30)
    assert Verdict.COLLAPSED not in verdicts([0.02] * 30)


def test_where_a_constant_output_is_the_goal_there_is_no_collapse() -> None:
    """One image, or copies of one: the mean image fits it perfectly."""
    assert verdicts([0.05] * 30, constant_loss=0.0)[-1] is Verdict.PLATEAU
    assert verdicts([0.05] * 30, constant_loss=1e-16)[-1] is Verdict.PLATEAU


def test_a_spike() -> None:
    assert verdicts([1e-5, 9e-6, 8e-6, 2.5e-2])[-1] is Verdict.SPIKE
    assert verdicts([1e-5, 9e-6, 8e-6, 1e-4])[-1] is Verdict.FINE  # a bump


def test_while_the_average_is_well_there_is_no_spike() -> None:
    monitor = Monitor(0.05)
    monitor.judge(point(50, 1e-5))
    assert monitor.judge(point(100, 1e-2, averaged=9e-6)) is Verdict.FINE


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_a_divergence(bad: float) -> None:
    assert verdicts([1e-3, bad])[-1] is Verdict.DIVERGED
    assert Monitor(0.05).judge(point(50, 1e-3, averaged=bad)) is Verdict.DIVERGED
    assert Monitor(0.05).judge(point(50, bad, averaged=1e-3)) is Verdict.DIVERGED


def test_a_loss_beyond_all_images_is_a_divergence_even_in_the_first_window() -> None:
    assert verdicts([1e6])[-1] is Verdict.DIVERGED
    assert verdicts([0.9])[-1] is Verdict.FINE


def test_after_an_intervention_the_run_is_given_time() -> None:
    monitor = Monitor(0.05)
    points = [point(50 * i, 1e-4) for i in range(1, 60)]
    seen = []
    for p in points:
        seen.append(monitor.judge(p))
        if seen[-1] is Verdict.PLATEAU:
            monitor.intervened(p.steps)
    first, second = (i for i, verdict in enumerate(seen) if verdict is Verdict.PLATEAU)
    assert (second - first) * 50 >= PATIENCE


def test_points_before_an_intervention_do_not_count_as_the_best() -> None:
    """From other weights, at a higher rate or without momentum, a loss far above the old best is no spike."""
    monitor = Monitor(0.05)
    monitor.judge(point(50, 1e-6))
    monitor.intervened(50)
    assert monitor.judge(point(100, 0.05)) is Verdict.FINE
    assert monitor.judge(point(150, 1e-6)) is Verdict.FINE
    assert monitor.judge(point(200, 0.02)) is Verdict.SPIKE


def test_while_the_rate_is_annealed_a_network_above_half_of_a_constant_output_is_not_given_up() -> None:
    still = [point(50 * i, 0.03) for i in range(1, 40)]
    stays, falls = Monitor(0.05), Monitor(0.05, collapsed=COLLAPSED_WHILE_ANNEALING)
    assert Verdict.COLLAPSED in [stays.judge(p) for p in still]
    assert Verdict.COLLAPSED not in [falls.judge(p) for p in still]


def test_a_short_run_has_less_patience() -> None:
    still = [point(50 * i, 0.05) for i in range(1, 10)]
    monitor, hurried = Monitor(0.05), Monitor(0.05, patience=200)
    assert {monitor.judge(p) for p in still} == {Verdict.FINE}
    assert hurried.judge(still[0]) is Verdict.FINE
    assert Verdict.COLLAPSED in [hurried.judge(p) for p in still[1:]]


def test_a_pause_ends_a_run_and_does_not_count_as_a_limit() -> None:
    limits = Limits(seconds=100, pause=10)
    assert limits.reached(9, 5) is None
    assert limits.reached(10, 5) == "paused"
    assert limits.share_used(10, 5) == pytest.approx(0.1)
    assert "limit of 100 s" in str(limits.reached(100, 5))


@pytest.mark.parametrize("power", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("factor", [0.5, 0.1, 0.01])
def test_on_a_power_law_the_time_left_is_right(power: float, factor: float) -> None:
    def loss(steps: float) -> float:
        return 0.05 * (steps / 100) ** -power

    history = [point(50 * i, loss(50 * i)) for i in range(1, 81)]
    goal = factor * history[-1].averaged
    truth = (100 * (goal / 0.05) ** (-1 / power) - 4000) / 100  # 100 steps a second
    assert seconds_to(history, goal) == pytest.approx(truth, rel=0.02)


def test_without_a_falling_curve_there_is_no_estimate() -> None:
    falling = [point(50 * i, 1 / i) for i in range(1, 20)]
    assert seconds_to(falling[:3], 1e-3) is None  # too early
    assert seconds_to([point(50 * i, 1e-3) for i in range(1, 20)], 1e-4) is None  # stands still
    assert seconds_to([point(50 * i, 1e-5 * i) for i in range(1, 20)], 1e-6) is None  # rises
    assert seconds_to([*falling, point(1000, math.nan)], 1e-4) is None
    nearly_still = [point(50 * i, 1e-3 - 1e-9 * i) for i in range(1, 20)]
    assert seconds_to(nearly_still, 1e-8) is None  # beyond all numbers
    assert seconds_to(falling, falling[-1].loss / 100) is not None
    assert seconds_to(falling, falling[-1].loss / 150) is None  # too far off to tell
    assert seconds_to(falling, 1.0) == pytest.approx(0.0, abs=1e-9)  # behind us


def test_limits() -> None:
    assert Limits().reached(1e9, 10**9) is None
    assert Limits(seconds=60).reached(59.9, 5) is None
    assert Limits(seconds=60).reached(60.0, 5) == "stopped at the limit of 60 s"
    assert Limits(steps=500).reached(1.0, 500) == "stopped at the limit of 500 steps"
    for wrong in (-1.0, math.nan):
        with pytest.raises(InputError, match="A limit cannot be negative"):
            Limits(seconds=wrong)
        with pytest.raises(InputError, match="A limit cannot be negative"):
            Limits(steps=wrong)
