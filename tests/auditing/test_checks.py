import math
from typing import Any

import pytest
import torch

from recollect import Images
from recollect.auditing import checks
from recollect.auditing.stability import Stability
from recollect.records import Record


def record(method: str = "blind", set_name: str = "train", **columns: Any) -> Record:
    count = len(next(iter(columns.values()), [0]))
    rows: dict[str, Any] = {"mse": [1.0] * count, "stop": ["converged"] * count} | columns
    numbers = [1] * count
    return Record(
        {"set": set_name, "mask": "half", "method": method}, {}, list(map(str, range(count))), rounds=numbers,
        steps=numbers, **rows,
    )  # fmt: skip


def test_determinism() -> None:
    assert checks.check_determinism(True).level == "ok"
    warned = checks.check_determinism(False)
    assert (warned.level, "not deterministic" in warned.sentence) == ("warning", True)


@pytest.mark.parametrize(
    ("loss", "level", "words"),
    [
        (1e-7, "ok", "fits"),
        (1.1e-7, "note", "read the approximate rate"),
        (5e-4, "note", "approximate"),
        (6e-4, "warning", "low rates mean little"),
        (math.nan, "warning", "not a finite number"),
    ],
)
def test_fit(loss: float, level: str, words: str) -> None:
    found = checks.check_fit(loss)
    assert found.level == level
    assert words in found.sentence


@pytest.mark.parametrize(
    ("given", "loss", "level"), [(None, 1.0, None), (True, 1.0, None), (False, 1e-5, "note"), (False, 1.0, "warning")]
)
def test_a_factory_without_weights_is_said(given: bool | None, loss: float, level: str | None) -> None:
    found = checks.check_weights(given, loss)
    assert (found and found.level) == level
    assert found is None or found.sentence.startswith("No weights were given to the factory")


def test_a_model_that_copies_is_warned_about() -> None:
    found = checks.check_copying(0.001)
    assert found is not None
    assert (found.level, "nearly unchanged (it moves them by 0.1% of the damage)" in found.sentence) == (
        "warning",
        True,
    )
    for restoring in (0.05, 1.3, math.nan, None):
        assert checks.check_copying(restoring) is None


def test_control_and_its_overlap() -> None:
    assert checks.check_control(None).level == "warning"
    assert "ran on 40 images that the model never saw" in checks.check_control(40).sentence
    assert checks.check_overlap([], 9).level == "ok"
    found = checks.check_overlap(["a", "b", "c"], 9)
    assert (found.level, "3 of the 9 unseen images" in found.sentence) == ("warning", True)
    assert found.sentence.endswith("No rate counts them: a, b, c.")
    many = checks.check_overlap([str(i) for i in range(25)], 30)
    assert many.sentence.endswith("0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more.")


def test_duplicates_inside_train() -> None:
    assert checks.check_duplicates(0, 9).level == "ok"
    found = checks.check_duplicates(2, 9)
    assert (found.level, "2 of the 9 training images" in found.sentence) == ("note", True)


@pytest.mark.parametrize(
    ("zeros", "level", "words"), [(0, "ok", "No original value"), (1, "note", "0.5%"), (3, "warning", "1.6%")]
)
def test_zeros_in_the_originals(zeros: int, level: str, words: str) -> None:
    pixels = torch.full((1, 3, 8, 8), 0.5)
    pixels[0, 0, 0, :zeros] = 0  # one channel is enough: masks are estimated value by value
    found = checks.check_black(Images(pixels))
    assert found.level == level
    assert words in found.sentence


def test_the_least_of_each_column_is_zero_in_a_range_of_its_own() -> None:
    rows = torch.rand(20, 7).clamp(min=0.1)
    rows[3] = 0
    assert checks.check_black(Images(rows)).level == "note"
    rows[4, 0] = 0
    assert checks.check_black(Images(rows)).level == "warning"


def test_zeros_are_counted_over_all_chunks() -> None:
    pixels = torch.full((5, 1, 2, 2), 0.5)
    pixels[4] = 0
    assert "20.0%" in checks.check_black(Images(pixels), chunk=2).sentence


def test_the_zero_rule_stands_beside_blind() -> None:
    rule = record("zero-rule", mask_accuracy=[1.0, 1.0, 1.0, 0.99], mse=[1e-9, 1e-9, 1.0, 1.0])
    blind = record("blind", mse=[1e-9, 1.0, 1.0, 1.0])
    other = record("blind", "control", mse=[1e-9])
    found = checks.check_zero_rule([rule, blind, other], ["zero-rule"], ["blind"])
    assert found is not None
    assert found.level == "note"
    assert "exact mask in 75% of the tries" in found.sentence
    assert "It recovers 50% accurately, blind 25%" in found.sentence
    hard = checks.check_zero_rule([record("zero-rule", mask_accuracy=[0.5, 0.9])], ["zero-rule"], ["blind"])
    assert hard is not None
    assert hard.level == "ok"
    assert "blind" not in hard.sentence
    assert checks.check_zero_rule([blind], ["zero-rule"], ["blind"]) is None
    unseen = record("zero-rule", "control", mask_accuracy=[1.0])
    assert checks.check_zero_rule([unseen], ["zero-rule"], ["blind"]) is None


def test_runs_that_did_not_settle() -> None:
    assert checks.check_stops([record(stop=["converged", "done"])]).level == "ok"
    some = checks.check_stops([record(stop=["converged"] * 8 + ["limit", "cycle"])])
    assert some.level == "note"
    assert "blind, 1 of 10 hit the limit of rounds, 1 of 10 ended in a cycle" in some.sentence
    assert checks.check_stops([record(stop=["converged", "limit"])]).level == "warning"
    diverged = [record("known", stop=["done"] * 9 + ["diverged"]), record(stop=["converged"] * 9 + ["limit"])]
    found = checks.check_stops(diverged)
    assert found.level == "warning"  # and a later note does not take it back
    assert "known, 1 of 10 diverged; blind, 1 of 10" in found.sentence
    at_limit = [record("iterate", stop=["limit"] * 5)]
    assert checks.check_stops(at_limit).level == "warning"
    assert checks.check_stops(at_limit, ["iterate"]).level == "note"


def test_float32_rounding() -> None:
    assert checks.check_rounding([record(mse=[1e-9, 1e-3])], None).level == "ok"
    small = checks.check_rounding([record(mse=[1e-14, 1e-3]), record(set_name="control", mse=[0.0])], None)
    assert (small.level, "50% of the errors are below 1e-13" in small.sentence) == ("note", True)
    measured = checks.check_rounding([record(mse=[1e-11, 1e-3])], 1e-10)
    assert "50% of the errors are below 1e-10" in measured.sentence
    coarse = checks.check_rounding([record(mse=[1e-3])], 2e-8)
    assert (coarse.level, "MSE of 2e-08" in coarse.sentence) == ("warning", True)


def test_attractors_and_recovery() -> None:
    rows = [{"attractor": a, "recovered": r} for a, r in [(True, True), (True, False), (False, True), (False, False)]]
    found = checks.check_attractors(rows)
    assert "2 of the 4 training images examined are attractors" in found.sentence
    assert "1 of 2 attractors and 1 of 2 others, so an image can be recovered without" in found.sentence
    assert "others" not in checks.check_attractors(rows[:2]).sentence
    undecided = checks.check_attractors([*rows, {"attractor": None, "recovered": True}])
    assert "1 of 2 others" in undecided.sentence
    assert undecided.sentence.endswith("For 1 the eigenvalues did not decide.")


@pytest.mark.parametrize(
    ("known", "level", "words"),
    [
        ("unknown", "note", "are unknown"),
        ({"train": {"exact": 0, "near": 0, "total": 9}}, "ok", "on cats, and has seen 0 of the 9 training images"),
        ({"train": {"exact": 0, "near": 2, "total": 9}}, "warning",
         "0 of the 9 training images exactly and 2 in a nearly equal copy: ddnm may recover them from its own memory"),
        ({"train": {"exact": 0, "near": 0, "total": 9}, "control": {"exact": 1, "near": 0, "total": 4}}, "warning",
         "1 of the 4 unseen images exactly and 0 in a nearly equal copy: ddnm may recover them from its own memory"),
    ],
)  # fmt: skip
def test_prior(known: Any, level: str, words: str) -> None:
    found = checks.check_prior({"name": "p", "trained_on": "cats", "known_to_it": known, "methods": ["ddnm"]})
    assert found.level == level
    assert words in found.sentence


def test_a_prior_is_weak_where_simple_inpainting_is_ahead_of_it() -> None:
    def strength(prior: float, simple: float) -> checks.Check | None:
        records = [record("ddnm", mse=[prior] * 3), record("biharmonic", mse=[simple] * 3)]
        return checks.check_prior_strength(records, ["ddnm"], ["biharmonic"])

    weak, strong = strength(1e-1, 1e-2), strength(1e-3, 1e-2)
    assert weak is not None
    assert weak.level == "warning"
    assert "inpainting (biharmonic) in 0 of 3 tries. In the median its images are 10.0 dB worse." in weak.sentence
    assert strong is not None
    assert (strong.level, "its images are 10.0 dB better." in strong.sentence) == ("ok", True)
    assert checks.check_prior_strength([record("ddnm", mse=[1.0])], ["ddnm"], []) is None


@pytest.mark.parametrize(
    ("moved", "flipped", "level", "words"),
    [
        (0, 0, "ok", "8 recoveries of refined under half were repeated in float64 and in batches of 3. None moved"),
        (3, 0, "note", "3 of them (38%) moved by more than 1e-07 (MSE), by up to 1.3e+01. The outcome changed for 0."),
        (3, 2, "warning", "Answers depend on rounding"),
    ],
)
def test_stability(moved: int, flipped: int, level: str, words: str) -> None:
    changes = ["float64", "batches of 3"]
    found = checks.check_stability(Stability("refined", "half", 8, changes, moved, flipped, 13.0, 1e-7))
    assert (found.name, found.level) == ("stability", level)
    assert words in found.sentence


def test_a_stated_range_that_fits_badly_is_a_warning() -> None:
    assert checks.check_range("") is None
    doubted = checks.check_range("Another fits.")
    assert doubted is not None
    assert (doubted.level, doubted.sentence) == ("warning", "Another fits.")
