"""What an audit finds of canaries: how many are recovered, and the epsilon that the guesses of their coins refute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.auditing.statistics import Row, Statistics
from recollect.auditing.thresholds import Threshold
from recollect.auditing.verdict import lower_bound, upper_bound
from recollect.canaries.design import Design
from recollect.canaries.guesses import Guess, guess_coins
from recollect.errors import InputError
from recollect.scoring import Rate

TWO_SIDED = 0.975  # each side of a 95% interval


@dataclass(frozen=True)
class Coins:
    """What is known of canaries beside their errors: everything that was fixed before training."""

    design: Design
    repeats: Mapping[str, int]  # by id
    commitment: str

    def facts(self) -> dict[str, Any]:
        """Give plain values for audit.json."""
        return {**self.design.facts(), "commitment": self.commitment, "repeats": dict(self.repeats)}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Coins:
        """Read what `facts` gave."""
        return cls(Design.of(facts), facts["repeats"], facts["commitment"])


@dataclass(frozen=True)
class Group:
    """The canaries of one number of repeats."""

    repeats: int
    inside: Rate  # recovered of those in
    outside: Rate
    guesses: list[Guess]

    @property
    def epsilon(self) -> float:
        return max(guess.epsilon for guess in self.guesses)

    @property
    def epsilon_of_repeats(self) -> float:
        return max(guess.epsilon_of_repeats for guess in self.guesses)

    def facts(self) -> Row:
        """Give plain values for audit.json."""
        return {
            "repeats": self.repeats,
            "in": _exact(self.inside),
            "out": _exact(self.outside),
            "guesses": [guess.facts() for guess in self.guesses],
            "epsilon": self.epsilon,
            "epsilon_of_repeats": self.epsilon_of_repeats,
        }


@dataclass(frozen=True)
class CanaryFinding:
    """All groups together; every bound in it holds at once, with the confidence of the design."""

    coins: Coins
    groups: list[Group]

    @property
    def epsilon(self) -> float:
        """The largest epsilon that is refuted for one training image."""
        return max(group.epsilon for group in self.groups)

    def facts(self) -> dict[str, Any]:
        """Give plain values for audit.json."""
        return {
            **self.coins.facts(),
            "groups": [group.facts() for group in self.groups],
            "epsilon": self.epsilon,
            "sentence": str(self),
        }

    def __str__(self) -> str:
        counts = "; ".join(
            f"with {_copies(group.repeats)}, {group.inside.of_total} in training and {group.outside.of_total} left out"
            for group in self.groups
        )
        return f"Canaries recovered: {counts}. {self._bound}"

    @property
    def _bound(self) -> str:
        design = self.coins.design
        terms = f"(delta {design.delta:g}, {design.confidence:.0%} confidence)"
        if self.epsilon > 0:
            return f"Epsilon is at least {self.epsilon:.2f} for one training image {terms}."
        return f"The guesses give no lower bound on epsilon {terms}. This does not show that training was private."


def find_canaries(statistics: Statistics, coins: Coins, threshold: Threshold) -> CanaryFinding:
    """Rank canaries by their smallest error over all attacks and masks, guess coins, and bound epsilon."""
    errors, inside = _errors(statistics, coins)
    repeats = np.array([coins.repeats[name] for name in sorted(coins.repeats)])
    numbers = sorted(set(repeats.tolist()))
    groups = []
    for number in numbers:
        own = repeats == number
        guesses = guess_coins(errors[own], inside[own], repeats=number, design=coins.design, groups=len(numbers))
        recovered = errors[own] < threshold.mse
        within, without = (Rate(int(recovered[side].sum()), int(side.sum())) for side in (inside[own], ~inside[own]))
        groups.append(Group(number, within, without, list(guesses)))
    return CanaryFinding(coins, groups)


def _errors(statistics: Statistics, coins: Coins) -> tuple[np.ndarray, np.ndarray]:
    """Take the errors of all canaries and their coins, sorted by name."""
    by_name: dict[str, tuple[float, bool]] = {}
    for set_name in ("train", "control"):
        ids = next(record.ids for record in statistics.records if record.cell["set"] == set_name)
        errors = statistics.any_attack(set_name).mse.tolist()
        by_name |= {name: (error, set_name == "train") for name, error in zip(ids, errors, strict=True)}
    if set(by_name) != set(coins.repeats):
        raise InputError("The records do not hold the errors of exactly these canaries; run the audit again.")
    rows = [by_name[name] for name in sorted(coins.repeats)]  # an order that no coin decides
    return np.array([error for error, _ in rows]), np.array([inside for _, inside in rows])


def _exact(rate: Rate) -> Row:
    """Write a rate with its exact (Clopper-Pearson) 95% interval."""
    low, high = lower_bound(rate, TWO_SIDED), upper_bound(rate, TWO_SIDED)
    return {"count": rate.count, "total": rate.total, "value": rate.value, "low": low, "high": high}


def _copies(repeats: int) -> str:
    return "1 copy" if repeats == 1 else f"{repeats} copies"
