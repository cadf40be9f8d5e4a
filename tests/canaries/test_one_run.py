import math
from itertools import product

import pytest

from recollect.canaries.one_run import epsilon_bound, p_value


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "printed"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],  # arXiv:2305.08846v1, pages 46 and 28
)
def test_values_that_the_paper_prints(canaries: int, guesses: int, correct: int, delta: float, printed: float) -> None:
    assert epsilon_bound(canaries, guesses, correct, delta=delta, level=0.05) == pytest.approx(printed, abs=1e-3)


def test_the_tail_is_that_of_all_outcomes_counted_one_by_one() -> None:
    right = math.e / (1 + math.e)
    outcomes = (sum(outcome) for outcome in product([0, 1], repeat=6))
    tail = sum(right**count * (1 - right) ** (6 - count) for count in outcomes if count >= 5)
    assert p_value(10, 6, 5, 1.0, 0.0) == pytest.approx(tail)


def test_delta_adds_the_steepest_part_of_the_distribution() -> None:
    probability = [math.comb(6, count) / 64 for count in range(7)]
    steepest = max(sum(probability[5 - i : 5]) / i for i in range(1, 6))
    assert p_value(10, 6, 5, 0.0, 1e-3) == pytest.approx(7 / 64 + 20 * 1e-3 * steepest)
    assert p_value(10, 6, 5, 0.0, 0.9) == 1


def test_all_correct_without_delta_has_a_closed_form() -> None:
    accuracy = 0.05 ** (1 / 30)
    assert epsilon_bound(60, 30, 30, delta=0, level=0.05) == pytest.approx(math.log(accuracy / (1 - accuracy)))


def test_copies_share_the_bound_of_their_group() -> None:
    together = epsilon_bound(60, 30, 30, delta=0, level=0.05)
    assert epsilon_bound(60, 30, 30, delta=0, level=0.05, copies=4) == pytest.approx(together / 4)
    of_one = epsilon_bound(60, 30, 30, delta=1e-4, level=0.05, copies=4)
    assert of_one < epsilon_bound(60, 30, 30, delta=1e-4, level=0.05) / 4  # delta grows faster than epsilon


@pytest.mark.parametrize(("guesses", "correct"), [(0, 0), (1, 1), (30, 0), (30, 15), (30, 18)])
def test_chance_refutes_nothing(guesses: int, correct: int) -> None:
    assert epsilon_bound(60, guesses, correct, delta=1e-5, level=0.05) == 0


def test_the_bound_is_where_the_test_stops_rejecting() -> None:
    bound = epsilon_bound(60, 40, 36, delta=1e-5, level=0.01)
    assert p_value(60, 40, 36, bound - 1e-6, 1e-5) < 0.01 < p_value(60, 40, 36, bound + 1e-6, 1e-5)
