"""Membership inference: tell training from control images by their recovery error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Membership:
    """The attack "an image with a small recovery error was trained on", over all thresholds."""

    auc: float
    tpr_at_1_fpr: float  # share of training images found at a false-positive rate of at most 1%
    roc: list[list[float]]  # false-positive and true-positive rate, for thresholds from none to all


def membership(train_mse: Sequence[float], control_mse: Sequence[float]) -> Membership:
    """Compute the ROC of the error as a score; equal errors share a threshold, unknown errors come last."""
    train, control = (np.nan_to_num(np.asarray(m, float), nan=np.inf) for m in (train_mse, control_mse))
    thresholds = np.unique(np.concatenate([train, control]))
    tpr = np.searchsorted(np.sort(train), thresholds, side="right") / len(train)
    fpr = np.searchsorted(np.sort(control), thresholds, side="right") / len(control)
    tpr, fpr = np.concatenate([[0.0], tpr]), np.concatenate([[0.0], fpr])
    auc = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    return Membership(auc, float(tpr[fpr <= 0.01].max()), _thinned(fpr, tpr))


def _thinned(fpr: np.ndarray, tpr: np.ndarray, most: int = 200) -> list[list[float]]:
    """Keep the curve's corners, few enough to draw."""
    corner = np.ones(len(fpr), bool)
    same_before = (fpr[1:-1] == fpr[:-2]) & (fpr[1:-1] == fpr[2:])
    corner[1:-1] = ~(same_before | (tpr[1:-1] == tpr[:-2]) & (tpr[1:-1] == tpr[2:]))
    points = np.stack([fpr, tpr], 1)[corner]
    step = max(1, -(-len(points) // most))
    return [[round(float(a), 6), round(float(b), 6)] for a, b in [*points[:-1:step], points[-1]]]
