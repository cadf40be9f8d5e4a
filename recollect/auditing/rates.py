"""Rates over several masks: the same images tried again and again, so their interval must not count each try as new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from recollect.scoring import Rate, Score, wilson


@dataclass(frozen=True)
class PooledRate(Rate):
    """A share of all tries, with a Wilson interval of the number of independent tries that they are worth."""

    independent: float

    @property
    def interval(self) -> tuple[float, float]:
        return effective_wilson(self.count / self.total, self.independent)


def pooled(scores: Sequence[Score], threshold: float) -> PooledRate:
    """All images under all masks, as one rate; images are independent of each other, masks of one image are not."""
    hits = torch.stack([score.mse < threshold for score in scores]).double()  # masks x images
    masks, images = hits.shape
    share = float(hits.mean())
    spread = float(hits.mean(0).var()) / images if images > 1 else 0.0  # of the mean, from image to image
    worth = share * (1 - share) / spread if spread > 0 else float(images)
    return PooledRate(int(hits.sum()), masks * images, min(max(worth, float(images)), float(masks * images)))


def effective_wilson(share: float, independent: float) -> tuple[float, float]:
    """The Wilson interval of a share of a number of tries, neither of which has to be whole."""
    count = share * independent
    return wilson(count, independent)  # type: ignore[arg-type]  # the formula asks for no whole numbers


def best(scores: Sequence[Score]) -> Score:
    """Per image the smallest error over all masks: what at least one mask gave back."""
    errors = torch.stack([score.mse.nan_to_num(nan=torch.inf) for score in scores])
    return Score(errors.min(0).values)


def rate_facts(rate: Rate) -> dict[str, Any]:
    """A rate as it stands in audit.json."""
    low, high = rate.interval
    return {"count": rate.count, "total": rate.total, "value": rate.value, "low": low, "high": high}
