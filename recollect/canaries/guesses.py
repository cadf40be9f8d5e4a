"""Guess the coins of canaries by their errors, and bound epsilon by the number of correct guesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.canaries.design import Design
from recollect.canaries.one_run import epsilon_bound


@dataclass(frozen=True)
class Guess:
    """The outcome of one rule: so many coins were guessed in and out, so many rightly."""

    inside: int
    outside: int
    correct: int
    epsilon: float  # refuted for one training image
    epsilon_of_repeats: float  # refuted for all copies of a canary together

    def facts(self) -> dict[str, Any]:
        """Give plain values for audit.json."""
        return {
            "in": self.inside, "out": self.outside, "correct": self.correct, "epsilon": self.epsilon,
            "epsilon_of_repeats": self.epsilon_of_repeats,
        }  # fmt: skip


def guess_coins(
    errors: np.ndarray, inside: np.ndarray, *, repeats: int, design: Design, groups: int
) -> Iterator[Guess]:
    """Try each rule of the design on the canaries of one number of repeats, of which there are `groups`."""
    for rule in design.rules:
        counts, correct = rule.counts(len(errors)), rule.correct(errors, inside)
        bounds = (
            epsilon_bound(
                len(errors), sum(counts), correct, delta=design.delta, level=design.level(groups), copies=copies
            )
            for copies in (repeats, 1)
        )
        yield Guess(*counts, correct, *bounds)
