"""Membership at equal difficulty: an error counts against the errors of unseen images that are as hard to restore.

A smooth image is restored well whether it was trained on or not. How hard an image is, is told by the error of
biharmonic inpainting under the same mask, which never sees the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FEWEST_UNSEEN = 20  # images, below which no score is calibrated
NEIGHBOURS = 10  # unseen images of nearly equal difficulty, at the least
SHARE = 0.1  # of the unseen images, where this is more
SMALLEST = 1e-30  # errors below this are alike

Numbers = Sequence[float] | np.ndarray


def calibrated_scores(
    train: Numbers, control: Numbers, train_difficulty: Numbers, control_difficulty: Numbers
) -> tuple[list[float], list[float]] | None:
    """Replace errors by their rank among errors of unseen images of equal difficulty; None with too few of them.

    A score is lower the more an image resembles trained ones: first by the quantile among its neighbours in difficulty,
    then by the ratio to their median. No unseen image is its own neighbour.
    """
    if len(control) < FEWEST_UNSEEN:
        return None
    errors, unseen = _logs(train), _logs(control)
    hard, unseen_hard = _logs(train_difficulty), _logs(control_difficulty)
    count = max(NEIGHBOURS, round(SHARE * len(unseen)))
    rows = []
    for error, difficulty in zip(errors, hard, strict=True):
        rows.append(_quantile_and_margin(error, unseen, np.abs(unseen_hard - difficulty), count))
    for number, error in enumerate(unseen):
        distances = np.abs(unseen_hard - unseen_hard[number])
        distances[number] = np.inf  # not compared with itself
        rows.append(_quantile_and_margin(error, unseen, distances, count))
    quantiles, margins = np.array(rows).T
    ranks = np.unique(np.stack([quantiles, margins], 1), axis=0, return_inverse=True)[1].ravel().astype(float)
    return ranks[: len(errors)].tolist(), ranks[len(errors) :].tolist()


def _quantile_and_margin(error: float, unseen: np.ndarray, distances: np.ndarray, count: int) -> tuple[float, float]:
    """Compare one error with those of the nearest unseen images: its quantile, and its ratio to their median."""
    beside = unseen[np.argpartition(distances, count - 1)[:count]]
    return float(np.mean((beside < error) + 0.5 * (beside == error))), float(error - np.median(beside))


def _logs(values: Numbers) -> np.ndarray:
    """Take logarithms; an error that is not known is the largest."""
    return np.log(np.clip(np.nan_to_num(np.asarray(values, float), nan=1e30, posinf=1e30), SMALLEST, 1e30))
