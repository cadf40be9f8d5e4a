"""What is fixed before training: how many coins are guessed, at which delta and confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.errors import InputError, is_number, is_whole

FEWEST = 20  # canaries for each number of repeats: fewer refute nothing


@dataclass(frozen=True)
class Rule:
    """The shares of the canaries that are guessed in, by the smallest errors, and out, by the largest.

    The auditor abstains from the others: a guess that is hardly better than chance weakens the bound.
    """

    inside: float
    outside: float

    def counts(self, canaries: int) -> tuple[int, int]:
        """Compute how many canaries are guessed in and out."""
        return int(self.inside * canaries), int(self.outside * canaries)

    def correct(self, errors: np.ndarray, inside: np.ndarray) -> int:
        """Count correct guesses; canaries with equal errors are taken in their own order, which no coin decides."""
        guessed_in, guessed_out = self.counts(len(errors))
        order = np.argsort(np.nan_to_num(errors, nan=np.inf), kind="stable")
        return int(inside[order[:guessed_in]].sum() + (~inside[order[len(order) - guessed_out :]]).sum())


# A model may have memorized few canaries or most. With most, a fair coin still leaves somewhat less than half in.
RULES = (Rule(1 / 8, 0.0), Rule(1 / 4, 0.0), Rule(3 / 8, 3 / 8))


@dataclass(frozen=True)
class Design:
    """How the bound on epsilon will be computed, written down before training."""

    delta: float = 1e-5
    confidence: float = 0.95
    rules: tuple[Rule, ...] = RULES

    def __post_init__(self) -> None:
        if not is_number(self.delta) or not 0 <= self.delta < 1:
            raise InputError(f"delta is a probability, from 0 to less than 1; got {self.delta!r}.")
        if not is_number(self.confidence) or not 0 < self.confidence < 1:
            raise InputError(f"confidence is a probability between 0 and 1; got {self.confidence!r}.")

    def level(self, groups: int) -> float:
        """Compute the risk of each test, so that all rules in all groups hold together (union bound)."""
        return (1 - self.confidence) / (len(self.rules) * groups)

    def facts(self) -> dict[str, Any]:
        """Give plain values."""
        rules = [[rule.inside, rule.outside] for rule in self.rules]
        return {"delta": float(self.delta), "confidence": float(self.confidence), "rules": rules}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Design:
        """Read what `facts` gave."""
        rules = tuple(Rule(float(inside), float(outside)) for inside, outside in facts["rules"])
        return cls(facts["delta"], facts["confidence"], rules)


def check_draw(count: int, repeats: Sequence[int]) -> None:
    """Refuse numbers of canaries, or of their repeats, that a bound cannot be computed from."""
    if not repeats or not all(is_whole(number, 1) for number in repeats) or len(set(repeats)) < len(repeats):
        raise InputError(f"repeats are different whole numbers, 1 or more, such as 1,4,16; got {list(repeats)}.")
    least = FEWEST * len(repeats)
    if not is_whole(count, least):
        raise InputError(
            f"count is a number of canaries, {least} or more: {FEWEST} for each of {len(repeats)} numbers of repeats; "
            f"got {count!r}."
        )
