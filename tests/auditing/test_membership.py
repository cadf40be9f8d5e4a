import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm

from recollect.auditing.membership import auc_interval, membership

errors = st.lists(st.sampled_from([0.0, 1e-9, 1e-7, 1e-5, 1e-3, 0.1, math.nan]), min_size=1, max_size=30)


@given(train=errors, control=errors)
def test_auc_is_the_chance_that_a_training_image_has_the_smaller_error(
    train: list[float], control: list[float]
) -> None:
    known = [[math.inf if math.isnan(e) else e for e in some] for some in (train, control)]
    pairs = [(a < b) + 0.5 * (a == b) for a in known[0] for b in known[1]]
    assert membership(train, control).auc == pytest.approx(sum(pairs) / len(pairs))


def test_auc_agrees_with_the_mann_whitney_test() -> None:
    rng = np.random.default_rng(0)
    train, control = 10 ** rng.normal(-6, 1, 300), 10 ** rng.normal(-5, 1, 170)
    reference = mannwhitneyu(control, train).statistic / (300 * 170)
    assert membership(train.tolist(), control.tolist()).auc == pytest.approx(reference, abs=1e-12)


@given(train=errors, control=errors)
def test_the_roc_and_its_point_at_one_percent_against_brute_force(train: list[float], control: list[float]) -> None:
    found = membership(train, control)
    known = [np.array([math.inf if math.isnan(e) else e for e in some]) for some in (train, control)]
    points = {(0.0, 0.0)} | {
        (float(np.mean(known[1] <= t)), float(np.mean(known[0] <= t))) for t in np.concatenate(known)
    }
    assert found.tpr_at_1_fpr is None  # too few unseen images
    repeated = membership(train, control * 100).tpr_at_1_fpr
    assert repeated == pytest.approx(max(y for x, y in points if x <= 0.01))
    rounded = {(round(x, 6), round(y, 6)) for x, y in points}
    assert {tuple(p) for p in found.roc} <= rounded
    assert (found.roc[0], found.roc[-1]) == ([0, 0], [1, 1])
    xs, ys = zip(*found.roc, strict=True)
    assert list(xs) == sorted(xs)
    assert np.trapezoid(ys, xs) == pytest.approx(found.auc, abs=1e-4)  # no corner is lost


def test_with_a_hundred_unseen_images_one_may_be_accused_and_with_fewer_nothing_is_said() -> None:
    control = [0.5, *[2.0] * 99]
    assert membership([0.1, 1.0], control).tpr_at_1_fpr == 1.0
    assert membership([0.1, 1.0], control[:99]).tpr_at_1_fpr is None


@given(st.floats(0, 1), st.integers(1, 300), st.integers(1, 300))
def test_the_interval_holds_the_auc_and_is_never_a_point(auc: float, train: int, control: int) -> None:
    low, high = auc_interval(auc, train, control)
    assert 0 <= low <= auc + 1e-9
    assert auc - 1e-9 <= high <= 1
    assert high - low > 1e-3


def test_the_interval_shrinks_with_images() -> None:
    widths = [np.ptp(auc_interval(0.8, count, count)) for count in (5, 20, 100, 1000)]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.5, 2.5])
@pytest.mark.parametrize(("train", "control"), [(40, 40), (60, 15)])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(distance: float, train: int, control: int) -> None:
    rng = np.random.default_rng(0)
    truth, covered = norm.cdf(distance / math.sqrt(2)), 0
    for _ in range(400):
        found = membership(rng.normal(-distance, 1, train).tolist(), rng.normal(0, 1, control).tolist())
        covered += found.auc_low <= truth <= found.auc_high
    assert covered / 400 > 0.92


def test_errors_that_say_nothing_are_a_guess() -> None:
    assert membership([1.0] * 5, [1.0] * 7).auc == 0.5
    assert membership([math.nan], [math.nan]).auc == 0.5


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rng = np.random.default_rng(0)
    found = membership(rng.random(5000).tolist(), rng.random(5000).tolist())
    assert len(found.roc) <= 202
    assert (found.roc[0], found.roc[-1]) == ([0, 0], [1, 1])
