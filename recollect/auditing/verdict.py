"""The verdict of an audit with a limit: passed, failed or inconclusive, and the reason.

Failed needs evidence of a leak, passed needs evidence of none. An audit with neither is inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from recollect.auditing.thresholds import APPROXIMATELY, NAMED, Threshold
from recollect.counting import counted
from recollect.scoring import Rate

if TYPE_CHECKING:
    from recollect.auditing.statistics import Statistics

CONFIDENCE = 0.95
BOUND = f"the upper {CONFIDENCE:.0%} bound"
MOST_IMAGES = 10_000_000  # a number needed above this is not given
Outcome = Literal["passed", "failed", "inconclusive"]
Share = Literal["rate", "excess"]
OPENINGS: dict[Outcome, str] = {"passed": "Model passed", "failed": "Model failed", "inconclusive": "Inconclusive"}
EXIT_CODES: dict[Outcome, int] = {"passed": 0, "failed": 3, "inconclusive": 4}
FROM_BEST: tuple[Outcome, ...] = ("passed", "inconclusive", "failed")


@dataclass(frozen=True)
class Gate:
    """The largest share of training images that may be recovered, and when an image counts as recovered."""

    limit: float
    threshold: Threshold = APPROXIMATELY


@dataclass(frozen=True)
class Verdict:
    """The outcome of a gate with everything that it rests on."""

    outcome: Outcome
    reason: str
    limit: float
    threshold: Threshold
    judged: Share  # the recovered share, or how far it is above the share of unseen images
    value: float
    bound: float  # the upper confidence bound of the value
    images_needed: int | None = None  # training images, where too few are the reason
    confidence: float = CONFIDENCE

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Verdict:
        """Read what `facts` gave."""
        values = {field.name: facts[field.name] for field in fields(cls)}
        return cls(**{**values, "threshold": Threshold(**facts["threshold"])})

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    @property
    def opening(self) -> str:
        """The outcome in short: it is the model that fails, not the audit."""
        return f"{OPENINGS[self.outcome]}:"

    def __str__(self) -> str:
        return f"{self.opening} {self.reason}"

    def facts(self) -> dict[str, Any]:
        """Give plain values for audit.json."""
        return {**asdict(self), "sentence": str(self), "exit_code": self.exit_code}


@dataclass(frozen=True)
class Judged:
    """The share that a gate judges: of training images, or its excess over unseen images if some are recovered too."""

    train: Rate
    control: Rate | None
    only_returned: int = 0  # of the training images: only damaged images of other pictures ended on them
    only_generated: int = 0  # of the training images: they are among the generated ones alone
    repeated: int = 0  # training images with an earlier twin: a second copy is no second piece of evidence

    @classmethod
    def of(cls, statistics: Statistics, threshold: Threshold, repeated: int = 0) -> Judged:
        """Count what an audit's attacks recovered."""
        control = statistics.any_attack("control").rate(threshold.mse) if statistics.has_control else None
        out = statistics.handed_out(threshold.mse)
        return cls(out.rate, control, out.only_returned, out.only_generated, repeated)

    @property
    def is_excess(self) -> bool:
        return self.control is not None and self.control.count > 0

    @property
    def value(self) -> float:
        return self.train.value - self.control.value if self.control else self.train.value

    @property
    def bound(self) -> float:
        """The upper bound; of an excess, each of the two rates takes half of the risk, so that both hold together."""
        if self.control is None or not self.is_excess:
            return upper_bound(self.different)
        each = (1 + CONFIDENCE) / 2
        return upper_bound(self.different, each) - lower_bound(self.control, each)

    @property
    def different(self) -> Rate:
        """The same share of the training images that differ from each other."""
        return _scaled(self.train, 1 - self.repeated / self.train.total)

    def times(self, factor: float) -> Judged:
        """Imagine the same shares of more images, none of them a copy."""
        control = _scaled(self.control, factor) if self.control else None
        return Judged(_scaled(self.train, factor), control)


def upper_bound(rate: Rate, confidence: float = CONFIDENCE) -> float:
    """Compute the exact (Clopper-Pearson) upper bound of a share, one-sided."""
    from scipy.special import betaincinv  # the quantile of a beta distribution; scipy.stats takes longer to import

    if rate.count == rate.total:
        return 1.0
    return float(betaincinv(rate.count + 1, rate.total - rate.count, confidence))


def lower_bound(rate: Rate, confidence: float = CONFIDENCE) -> float:
    """Compute the exact (Clopper-Pearson) lower bound of a share, one-sided."""
    return 1 - upper_bound(Rate(rate.total - rate.count, rate.total), confidence)


def decide_for(gate: Gate, statistics: Statistics, repeated: int, doubts: Sequence[str] = ()) -> Verdict:
    """Decide at every threshold that a gate judges; the worst outcome stands, of equal ones that of its own."""
    verdicts = [
        decide(Gate(gate.limit, threshold), Judged.of(statistics, threshold, repeated), doubts)
        for threshold in judged_thresholds(gate.threshold)
    ]
    return max(verdicts, key=lambda verdict: FROM_BEST.index(verdict.outcome))


def judged_thresholds(own: Threshold) -> list[Threshold]:
    """List a gate's own threshold and the named ones below it.

    Unseen images that are recovered by eye make the excess small. They must not hide training images that are recovered
    accurately while unseen ones are not.
    """
    return [own, *(threshold for threshold in NAMED.values() if threshold.mse < own.mse)]


def decide(gate: Gate, judged: Judged, doubts: Sequence[str] = ()) -> Verdict:
    """Compare what is recovered with the limit. `doubts` are sentences that say why a low rate means little."""
    measured = _measured(judged, gate.threshold)
    needed = None
    outcome: Outcome
    if judged.value > gate.limit:
        outcome, reason = "failed", f"{measured}, above the limit of {gate.limit:.2%}."
    elif doubts:
        outcome, reason = "inconclusive", f"{measured}, but that means little. {' '.join(doubts)}"
    elif judged.bound <= gate.limit:
        outcome, reason = "passed", f"{measured}; {BOUND}, {judged.bound:.2%}, is within {gate.limit:.2%}."
    else:
        needed = images_needed(judged, gate.limit)
        outcome, reason = "inconclusive", f"{measured}, but {_too_few(judged, gate.limit, needed)}"
    share: Share = "excess" if judged.is_excess else "rate"
    return Verdict(outcome, reason, gate.limit, gate.threshold, share, judged.value, judged.bound, needed)


def images_needed(judged: Judged, limit: float) -> int | None:
    """Compute how many training images would show the same share to be within the limit; None if none can."""
    have = judged.train.total

    def enough(images: int) -> bool:
        return judged.times(images / have).bound <= limit

    most = judged.different.total
    while not enough(most):
        most *= 2
        if most > MOST_IMAGES:
            return None
    fewest = most // 2
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (fewest, middle) if enough(middle) else (middle, most)
    return most


def _scaled(rate: Rate, factor: float) -> Rate:
    total = max(1, round(rate.total * factor))
    return Rate(min(total, math.ceil(rate.value * total - 1e-9)), total)


def _measured(judged: Judged, threshold: Threshold) -> str:
    train = judged.train
    sentence = (
        f"{train.count} of {counted(train.total, 'training image')} ({train.value:.1%}) are recovered ({threshold})"
    )
    if judged.only_returned:
        sentence += f", {judged.only_returned} of them only as the result of damaged copies of other images"
    if judged.only_generated:
        sentence += f", {judged.only_generated} of them only among samples of the model"
    if not judged.is_excess or judged.control is None:
        return sentence
    control = judged.control
    return (
        f"{sentence}, and so are {control.count} of {counted(control.total, 'unseen image')} ({control.value:.1%}); "
        f"the excess, {judged.value:+.1%}, is judged"
    )


def _too_few(judged: Judged, limit: float, needed: int | None) -> str:
    few = f"only {judged.different.total} different images" if judged.repeated else "so few images"
    sentence = f"{BOUND} of {few} is {judged.bound:.2%}, above the limit of {limit:.2%}."
    if needed is None:
        return f"{sentence} No number of images can show a share this close to the limit."
    different = "different " if judged.repeated else ""
    others = ", and unseen images in proportion," if judged.is_excess else ""
    return f"{sentence} At least {needed:,} {different}training images{others} are needed."
