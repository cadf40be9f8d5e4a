import math

import numpy as np
import pytest

from recollect.auditing.calibration import FEWEST_UNSEEN, calibrated_scores
from recollect.auditing.membership import Membership, membership


def drawn(seed: int, gain: float, train: int = 60, control: int = 60) -> tuple[Membership, Membership]:
    """Errors that follow the difficulty of an image, and are `gain` lower in logarithm if it was trained on."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 2, train + control)
    errors = difficulty + rng.normal(0, 0.5, train + control)
    errors[:train] -= gain
    parts = [np.exp(values[rows]) for values in (errors, difficulty) for rows in (slice(train), slice(train, None))]
    scores = calibrated_scores(*parts)
    assert scores is not None
    return membership(parts[0].tolist(), parts[1].tolist()), membership(*scores)


@pytest.mark.parametrize("seed", range(3))
def test_members_are_told_apart_that_differ_less_than_images_differ_in_difficulty(seed: int) -> None:
    raw, calibrated = drawn(seed, gain=1.0)
    assert calibrated.auc > raw.auc + 0.1
    assert calibrated.auc_low > 0.5


def test_without_members_the_interval_holds_a_guess_as_often_as_it_says() -> None:
    found = [drawn(seed, gain=0.0, train=40, control=30)[1] for seed in range(100)]
    assert sum(c.auc_low <= 0.5 <= c.auc_high for c in found) >= 91  # of 95 expected, in all but 5 of 100 draws
    assert np.mean([c.auc for c in found]) == pytest.approx(0.5, abs=0.03)


def test_a_score_does_not_depend_on_the_scale_of_errors_and_difficulty() -> None:
    rng = np.random.default_rng(0)
    errors, unseen, hard, unseen_hard = (np.exp(rng.normal(0, 1, count)) for count in (7, 30, 7, 30))
    assert calibrated_scores(errors, unseen, hard, unseen_hard) == calibrated_scores(
        9 * errors, 9 * unseen, hard**2, unseen_hard**2
    )


def test_too_few_unseen_images_and_errors_that_are_not_known() -> None:
    few = [1.0] * (FEWEST_UNSEEN - 1)
    assert calibrated_scores([0.5], few, [1.0], few) is None
    unseen = list(np.linspace(0.1, 1, 30))
    scores = calibrated_scores([0.0, math.nan], unseen, [0.5, 0.5], [0.5] * 30)
    assert scores is not None
    (smallest, unknown), others = scores
    assert smallest < min(others)
    assert unknown > max(others)
