import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from recollect.auditing.membership import membership

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
    assert found.tpr_at_1_fpr == pytest.approx(max(y for x, y in points if x <= 0.01))
    rounded = {(round(x, 6), round(y, 6)) for x, y in points}
    assert {tuple(p) for p in found.roc} <= rounded
    assert (found.roc[0], found.roc[-1]) == ([0, 0], [1, 1])
    xs, ys = zip(*found.roc, strict=True)
    assert list(xs) == sorted(xs)
    assert np.trapezoid(ys, xs) == pytest.approx(found.auc, abs=1e-4)  # no corner is lost


def test_with_a_hundred_control_images_one_may_be_accused() -> None:
    control = [0.5, *[2.0] * 99]
    assert membership([0.1, 1.0], control).tpr_at_1_fpr == 1.0
    assert membership([0.1, 1.0], control[:99]).tpr_at_1_fpr == 0.5  # one of 99 would be more than 1%


def test_errors_that_say_nothing_are_a_guess() -> None:
    assert membership([1.0] * 5, [1.0] * 7).auc == 0.5
    assert membership([math.nan], [math.nan]).auc == 0.5


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rng = np.random.default_rng(0)
    found = membership(rng.random(5000).tolist(), rng.random(5000).tolist())
    assert len(found.roc) <= 202
    assert (found.roc[0], found.roc[-1]) == ([0, 0], [1, 1])
