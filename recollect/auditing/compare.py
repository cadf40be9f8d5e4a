"""Compare two audits of the same images: what each recovers, with McNemar's paired test."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from recollect.auditing.result import Audit
from recollect.auditing.thresholds import APPROXIMATELY, Threshold
from recollect.errors import InputError
from recollect.records import ANY_MASK
from recollect.scoring import Rate, Score

ANY_ATTACK = "any attack"


@dataclass(frozen=True)
class Comparison:
    """One set and one method, or any attack, in two audits; images are paired."""

    set: str
    method: str
    first: int  # recovered by the first audit
    second: int
    only_first: int
    only_second: int
    images: int
    p_value: float  # of McNemar's exact test: a difference at least as large by chance, if there is none

    def facts(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self)

    @property
    def rates(self) -> tuple[Rate, Rate]:
        return Rate(self.first, self.images), Rate(self.second, self.images)


def compare_audits(first: Audit, second: Audit, threshold: Threshold = APPROXIMATELY) -> list[Comparison]:
    """Compare what any attack recovers, and each method that both audits ran, under any mask."""
    _check_comparable(first, second)
    rows = []
    for name in first.sets:
        if name not in second.sets:
            continue
        rows.append(_paired(name, ANY_ATTACK, first.any_attack(name), second.any_attack(name), threshold))
        for method in first.methods:
            if method in second.methods:
                one, other = (audit.score(name, ANY_MASK, method) for audit in (first, second))
                rows.append(_paired(name, method, one, other, threshold))
    return rows


def mcnemar(only_first: int, only_second: int) -> float:
    """Compute the exact two-sided p-value of McNemar's test: images that differ are flips of a fair coin."""
    flips, fewer = only_first + only_second, min(only_first, only_second)
    outcomes = sum(math.comb(flips, heads) for heads in range(fewer + 1))
    return min(1.0, 2 * outcomes / 2**flips)


def _paired(set_name: str, method: str, first: Score, second: Score, threshold: Threshold) -> Comparison:
    one, other = first.mse < threshold.mse, second.mse < threshold.mse
    only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
    return Comparison(
        set_name, method, int(one.sum()), int(other.sum()), only_first, only_second, len(one),
        mcnemar(only_first, only_second),
    )  # fmt: skip


def _check_comparable(first: Audit, second: Audit) -> None:
    """Refuse audits of other images or other damage: images could not be paired."""
    for name in first.sets:
        if name in second.sets and first.facts[name]["hash"] != second.facts[name]["hash"]:
            raise InputError(
                f"The two audits are of different {name} images ({first.facts[name]['name']} and "
                f"{second.facts[name]['name']}); audit both models on the same images."
            )
    if first.masks != second.masks:
        raise InputError(
            f"The two audits have different masks ({', '.join(first.masks)} and {', '.join(second.masks)}); audit both "
            "models under the same masks."
        )
    others = [mask for mask in first.masks if _damage(first, mask) != _damage(second, mask)]
    if others:
        raise InputError(
            f"The two audits damaged images in different ways under the mask {others[0]} (its pixels, the fill, the "
            "noise or the seed); audit both models with the same settings."
        )


def _damage(audit: Audit, mask: str) -> list[Any]:
    """Get what decides how training images are damaged under a mask."""
    record = next(r for r in audit.records if r.cell["set"] == "train" and r.cell["mask"] == mask)
    return [record.settings[name] for name in ("mask", "noise_std", "seed")]
