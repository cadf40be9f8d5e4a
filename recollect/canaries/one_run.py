"""A lower bound on epsilon from one training run, after Steinke, Nasr and Jagielski (2023, arXiv:2305.08846).

A guess is right with probability e^eps / (1 + e^eps) at most if training is eps-DP and the coins are fair. The number
of right guesses is then no larger than a binomial variable. Delta adds to its tail (Theorem 5.2, Appendix D).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the probability of so many correct guesses if training is (epsilon, delta)-DP.

    `canaries` were each included by a fair coin; for `guesses` of them, a number fixed beforehand, the coin is guessed.
    """
    from scipy.special import bdtrc

    accuracy = 1 / (1 + math.exp(-epsilon))
    tail = float(bdtrc(correct - 1, guesses, accuracy)) if correct else 1.0
    if delta == 0 or correct == 0:
        return tail
    fewer = np.arange(correct - 1, -1, -1)
    below = _binomial(fewer, guesses, accuracy).cumsum()  # P[correct - i <= W < correct]
    steepest = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * steepest)


@lru_cache(4096)
def epsilon_bound(
    canaries: int, guesses: int, correct: int, *, delta: float, level: float, copies: int = 1, steps: int = 40
) -> float:
    """Compute the largest epsilon that the guesses refute, for one of the `copies` of each canary; 0 if there is none.

    Training that is (eps, delta)-DP for one image is (k eps, delta_k)-DP for k copies of one: group privacy, with
    delta_k = delta (e^(k eps) - 1) / (e^eps - 1).
    """
    if not guesses:
        return 0.0

    def refuted(epsilon: float) -> bool:
        together = delta * _copies_worth(epsilon, copies)
        return together < 1 and p_value(canaries, guesses, correct, copies * epsilon, together) < level

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, max(0.0, _largest(guesses, level)) / copies
    for _ in range(steps):  # `low` is refuted
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _binomial(counts: np.ndarray, total: int, share: float) -> np.ndarray:
    """Compute binomial probabilities; scipy.stats takes twenty times as long."""
    from scipy.special import gammaln, xlog1py, xlogy

    log_coefficients = gammaln(total + 1) - gammaln(counts + 1) - gammaln(total - counts + 1)
    return np.exp(log_coefficients + xlogy(counts, share) + xlog1py(total - counts, -share))


def _largest(guesses: int, level: float) -> float:
    """Compute the epsilon that remains possible even if all guesses are correct: accuracy ** guesses = level."""
    accuracy = level ** (1 / guesses)
    return math.log(accuracy / (1 - accuracy))


def _copies_worth(epsilon: float, copies: int) -> float:
    """Compute (e^(k eps) - 1) / (e^eps - 1), which is k at 0."""
    return math.fsum(math.exp(number * epsilon) for number in range(copies))
