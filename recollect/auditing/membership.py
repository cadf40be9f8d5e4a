"""Membership inference: tell training from control images by their recovery error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.scoring import Z_95

FEWEST_CONTROL = 100  # unseen images, below which a false-positive rate of 1% cannot be told from none


@dataclass(frozen=True)
class Membership:
    """The attack "an image with a small recovery error was trained on", over all thresholds."""

    auc: float
    auc_low: float  # Newcombe's 95% interval
    auc_high: float
    tpr_at_1_fpr: float | None  # share of training images found at 1% false positives; None with too few unseen images
    roc: list[list[float]]  # false-positive and true-positive rate, for thresholds from none to all


def membership(train_mse: Sequence[float], control_mse: Sequence[float]) -> Membership:
    """Compute the ROC of the error as a score; equal errors share a threshold, unknown errors come last."""
    train = np.nan_to_num(np.asarray(train_mse, float), nan=np.inf)
    control = np.nan_to_num(np.asarray(control_mse, float), nan=np.inf)
    thresholds = np.unique(np.concatenate([train, control]))
    tpr = _share_up_to(thresholds, train)
    fpr = _share_up_to(thresholds, control)
    auc = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    tpr_at_1_fpr = float(tpr[fpr <= 0.01].max()) if len(control) >= FEWEST_CONTROL else None
    low, high = auc_interval(auc, len(train), len(control))
    return Membership(auc, low, high, tpr_at_1_fpr, _thinned(fpr, tpr))


def _share_up_to(thresholds: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Compute the share of errors up to each threshold, after the share below all of them."""
    counts = np.searchsorted(np.sort(errors), thresholds, side="right")
    return np.concatenate([[0.0], counts / len(errors)])


def auc_interval(auc: float, train: int, control: int) -> tuple[float, float]:
    """Compute Newcombe's 95% interval of an AUC (2006, method 5): all AUCs from which this one is not surprising.

    DeLong's interval and the bootstrap have no width where all errors are separated, which is common here.
    """

    def surprises(truth: float) -> bool:
        return abs(truth - auc) > Z_95 * math.sqrt(_variance(truth, train, control))

    # A little inside: at 0 and at 1 the variance is zero, and the end itself would be taken for the solution.
    inside = min(1 - 1e-9, max(1e-9, auc))
    low = _border(surprises, inside, 0.0) if auc > 1e-9 else 0.0
    high = _border(surprises, inside, 1.0) if auc < 1 - 1e-9 else 1.0
    return low, high


def _border(surprises: Callable[[float], bool], inside: float, outside: float) -> float:
    """Bisect to the last AUC that does not surprise; to import scipy.optimize takes longer than thousands of these."""
    while (middle := (inside + outside) / 2) not in (inside, outside):
        if surprises(middle):
            outside = middle
        else:
            inside = middle
    return inside


def _variance(auc: float, train: int, control: int) -> float:
    """Compute the variance of an AUC after Hanley and McNeil (1982), with the mean of both numbers (Newcombe)."""
    others = (train + control) / 2 - 1
    spread = 1 + others * ((1 - auc) / (2 - auc) + auc / (1 + auc))
    return auc * (1 - auc) * spread / (train * control)


def _thinned(fpr: np.ndarray, tpr: np.ndarray, most: int = 200) -> list[list[float]]:
    """Keep the curve's corners, few enough to draw."""
    points = np.stack([fpr, tpr], 1)
    corner = np.ones(len(points), bool)
    corner[1:-1] = ~(_on_a_line(fpr) | _on_a_line(tpr))
    points = points[corner]
    step = math.ceil(len(points) / most)
    kept = np.concatenate([points[:-1:step], points[-1:]]).tolist()
    return [[round(false_positives, 6), round(true_positives, 6)] for false_positives, true_positives in kept]


def _on_a_line(rates: np.ndarray) -> np.ndarray:
    """Mark the inner points of a curve that have the rate of both neighbours."""
    inner = rates[1:-1]
    return (inner == rates[:-2]) & (inner == rates[2:])
