import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from recollect.auditing.statistics import Statistics
from recollect.auditing.thresholds import APPROXIMATELY, EXACT, Threshold
from recollect.auditing.verdict import Gate, Judged, decide, decide_for, images_needed, lower_bound, upper_bound
from recollect.scoring import Rate
from tests.auditing.test_headline import record

ONE_PERCENT = Gate(0.01)
CONTROL = Rate(0, 50)


@st.composite
def rates(draw: st.DrawFn, most: int = 400) -> Rate:
    total = draw(st.integers(1, most))
    return Rate(draw(st.integers(0, total)), total)


# --- bounds


@given(rates())
def test_the_bounds_are_where_the_binomial_tails_are_five_percent(rate: Rate) -> None:
    low, high = lower_bound(rate), upper_bound(rate)
    assert 0 <= low <= rate.value <= high <= 1
    if rate.count < rate.total:
        assert binom.cdf(rate.count, rate.total, high) == pytest.approx(0.05, abs=1e-6)
    if rate.count > 0:
        assert binom.sf(rate.count - 1, rate.total, low) == pytest.approx(0.05, abs=1e-6)


@given(rates(), st.integers(1, 50))
def test_the_bound_grows_with_what_is_recovered_and_shrinks_with_images(rate: Rate, more: int) -> None:
    if rate.count < rate.total:
        assert upper_bound(Rate(rate.count + 1, rate.total)) > upper_bound(rate)
    assert upper_bound(Rate(rate.count * (more + 1), rate.total * (more + 1))) <= upper_bound(rate) + 1e-12


@pytest.mark.parametrize("share", [0.005, 0.01, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("total", [10, 40, 300])
def test_the_upper_bound_covers_the_truth_at_least_as_often_as_it_says(share: float, total: int) -> None:
    covered = sum(
        float(binom.pmf(count, total, share)) for count in range(total + 1) if upper_bound(Rate(count, total)) >= share
    )
    assert covered >= 0.95


@pytest.mark.parametrize(("train", "control"), [(0.1, 0.05), (0.3, 0.3), (0.02, 0.2)])
def test_the_bound_of_an_excess_covers_it_at_least_as_often_as_it_says(train: float, control: float) -> None:
    images, covered = 40, 0.0
    for hits in range(images + 1):
        for others in range(images + 1):
            chance = float(binom.pmf(hits, images, train) * binom.pmf(others, images, control))
            if chance > 1e-9:
                judged = Judged(Rate(hits, images), Rate(others, images))
                covered += chance * (judged.bound >= train - control)
    assert covered >= 0.95


def test_the_bound_of_no_recovery_is_known_in_closed_form() -> None:
    assert upper_bound(Rate(0, 40)) == pytest.approx(1 - 0.05 ** (1 / 40))
    assert images_needed(Judged(Rate(0, 40), CONTROL), 0.01) == 299
    assert math.ceil(math.log(0.05) / math.log(0.99)) == 299


# --- outcomes


def test_passed_failed_and_too_few() -> None:
    passed = decide(ONE_PERCENT, Judged(Rate(0, 299), CONTROL))
    assert (passed.outcome, passed.exit_code, passed.judged) == ("passed", 0, "rate")
    assert str(passed) == (
        "Model passed: 0 of 299 training images (0.0%) are recovered (MSE below 5e-04); the upper 95% bound, 1.00%, is "
        "within 1.00%."
    )
    failed = decide(ONE_PERCENT, Judged(Rate(40, 40), CONTROL))
    assert (failed.outcome, failed.exit_code, failed.value, failed.bound) == ("failed", 3, 1.0, 1.0)
    assert failed.reason == (
        "40 of 40 training images (100.0%) are recovered (MSE below 5e-04), above the limit of 1.00%."
    )
    few = decide(ONE_PERCENT, Judged(Rate(0, 40), CONTROL))
    assert (few.outcome, few.exit_code, few.images_needed) == ("inconclusive", 4, 299)
    assert few.reason.endswith(
        "but the upper 95% bound of so few images is 7.22%, above the limit of 1.00%. At least 299 training images are "
        "needed."
    )


@given(rates(), st.none() | rates(60), st.floats(0, 1))
def test_the_outcome_follows_from_value_bound_and_limit(train: Rate, control: Rate | None, limit: float) -> None:
    verdict = decide(Gate(limit), Judged(train, control))
    expected = "failed" if verdict.value > limit else "passed" if verdict.bound <= limit else "inconclusive"
    assert verdict.outcome == expected
    assert (verdict.images_needed is not None) <= (verdict.outcome == "inconclusive")
    assert (verdict.judged == "excess") == bool(control and control.count)


ORDER = {"passed": 0, "inconclusive": 1, "failed": 2}


@given(rates(), st.none() | rates(60), st.floats(0, 1), st.floats(0, 1))
def test_more_recoveries_and_stricter_limits_never_give_a_better_outcome(
    train: Rate, control: Rate | None, limit: float, other: float
) -> None:
    strict, lax = sorted((limit, other))
    judged = Judged(train, control)
    assert ORDER[decide(Gate(strict), judged).outcome] >= ORDER[decide(Gate(lax), judged).outcome]
    if train.count < train.total:
        more = Judged(Rate(train.count + 1, train.total), control)
        assert ORDER[decide(Gate(limit), more).outcome] >= ORDER[decide(Gate(limit), judged).outcome]


@given(rates(), st.none() | rates(60), st.floats(0.001, 0.999))
def test_doubts_keep_from_passing_and_never_from_failing(train: Rate, control: Rate | None, limit: float) -> None:
    sure = decide(Gate(limit), Judged(train, control))
    doubtful = decide(Gate(limit), Judged(train, control), ["The model does not fit."])
    assert doubtful.outcome == ("failed" if sure.outcome == "failed" else "inconclusive")
    assert ("The model does not fit." in doubtful.reason) == (doubtful.outcome == "inconclusive")


@given(st.integers(0, 3), st.integers(20, 60), st.none() | rates(40))
def test_so_many_images_as_needed_are_enough(count: int, total: int, control: Rate | None) -> None:
    verdict = decide(Gate(0.2), Judged(Rate(count, total), control))
    if verdict.images_needed is None:
        return
    factor = verdict.images_needed / total
    assert Judged(Rate(count, total), control).times(factor).bound <= 0.2
    assert verdict.images_needed > total


def test_where_unseen_images_are_recovered_too_the_excess_is_judged() -> None:
    both = decide(Gate(0.10), Judged(Rate(300, 1000), Rate(290, 1000)))
    assert (both.outcome, both.judged) == ("passed", "excess")
    assert "and so are 290 of 1000 unseen images (29.0%); the excess, +1.0%, is judged; the upper" in both.reason
    assert decide(Gate(0.10), Judged(Rate(300, 1000), Rate(0, 1000))).outcome == "failed"
    few = decide(Gate(0.10), Judged(Rate(3, 10), Rate(3, 10)))
    assert few.outcome == "inconclusive"
    assert "training images, and unseen images in proportion, are needed." in few.reason


def found(train: list[float], control: list[float]) -> Statistics:
    return Statistics([record(train, method="refined"), record(control, "control", method="refined")], "refined")


RESTORED_BY_EYE = [1e-4] * 150 + [1.0] * 150


def test_unseen_images_restored_by_eye_do_not_hide_exact_recoveries() -> None:
    """Half of both sets is smooth and restored by eye; of the training images these are memorized."""
    hidden = found([1e-9] * 150 + [1.0] * 150, RESTORED_BY_EYE)
    for threshold in (APPROXIMATELY, Threshold("own", 0.1)):
        failed = decide_for(Gate(0.15, threshold), hidden, 0, ["Unseen images are recovered too."])
        assert (failed.outcome, failed.judged, failed.value, failed.threshold) == ("failed", "rate", 0.5, EXACT)
    nothing = decide_for(Gate(0.15), found(RESTORED_BY_EYE, RESTORED_BY_EYE), 0)
    assert (nothing.outcome, nothing.judged, nothing.threshold) == ("passed", "excess", APPROXIMATELY)
    few = decide_for(Gate(0.15), found([1e-9] * 42 + RESTORED_BY_EYE[42:], RESTORED_BY_EYE), 0)
    assert (few.outcome, few.threshold) == ("inconclusive", EXACT)
    assert decide_for(Gate(0.15), found([1e-9] * 300, [1.0] * 300), 0).threshold == APPROXIMATELY


def test_copies_of_an_image_are_no_further_evidence() -> None:
    copies = decide(Gate(0.01), Judged(Rate(0, 320), CONTROL, repeated=316))
    assert (copies.outcome, copies.images_needed) == ("inconclusive", 299)
    assert copies.bound == upper_bound(Rate(0, 4))
    assert copies.reason.endswith(
        "of only 4 different images is 52.71%, above the limit of 1.00%. At least 299 different training images are "
        "needed."
    )
    assert decide(Gate(0.01), Judged(Rate(0, 320), CONTROL, repeated=21)).outcome == "passed"
    assert decide(Gate(0.01), Judged(Rate(40, 40), CONTROL, repeated=39)).outcome == "failed"


def test_images_that_only_other_pictures_led_to_are_named() -> None:
    reason = decide(Gate(0.01), Judged(Rate(8, 40), CONTROL, only_returned=3)).reason
    assert (
        "(20.0%) are recovered (MSE below 5e-04), 3 of them only as the result of damaged copies of other images,"
        in reason
    )


def test_the_ends_of_the_scale() -> None:
    assert decide(Gate(1.0), Judged(Rate(6, 6), None)).outcome == "passed"
    nothing = decide(Gate(0.0), Judged(Rate(0, 5), CONTROL))
    assert (nothing.outcome, nothing.images_needed) == ("inconclusive", None)
    assert nothing.reason.endswith("No number of images can show a share this close to the limit.")


def test_the_facts_are_plain_values() -> None:
    facts = decide(Gate(0.01, Threshold("own", 1e-3)), Judged(Rate(0, 40), CONTROL)).facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["threshold"] == {"name": "own", "mse": 1e-3}
    assert facts["sentence"].startswith("Inconclusive: 0 of 40")
    assert (facts["exit_code"], facts["limit"], facts["confidence"]) == (4, 0.01, 0.95)
    assert Gate(0.5).threshold == APPROXIMATELY != EXACT
