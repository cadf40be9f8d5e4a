import numpy as np

from recollect.canaries.design import Design
from recollect.canaries.guesses import guess_coins

INSIDE = np.arange(80) % 2 == 0


def test_errors_that_tell_every_coin_refute_a_large_epsilon() -> None:
    guesses = list(guess_coins(np.where(INSIDE, 1e-9, 1.0), INSIDE, repeats=4, design=Design(), groups=1))
    counts = [(guess.inside, guess.outside, guess.correct) for guess in guesses]
    assert counts == [(10, 0, 10), (20, 0, 20), (30, 30, 60)]
    bounds = [guess.epsilon_of_repeats for guess in guesses]
    assert 0 < bounds[0] < bounds[1] < bounds[2]
    assert all(guess.epsilon <= guess.epsilon_of_repeats / 4 for guess in guesses)
    assert guesses[0].facts()["correct"] == 10


def test_more_groups_cost_a_little_of_the_bound() -> None:
    errors = np.where(INSIDE, 1e-9, 1.0)
    alone, beside = (
        list(guess_coins(errors, INSIDE, repeats=1, design=Design(), groups=groups))[-1].epsilon for groups in (1, 3)
    )
    assert 0.7 * alone < beside < alone


def test_errors_that_tell_no_coin_refute_nothing() -> None:
    guesses = guess_coins(np.arange(80.0), INSIDE, repeats=1, design=Design(), groups=1)
    assert [guess.epsilon for guess in guesses] == [0, 0, 0]
