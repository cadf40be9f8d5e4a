import math
from typing import Any

import pytest

from recollect.auditing.doubts import find_doubts
from recollect.auditing.stability import Stability
from recollect.auditing.thresholds import APPROXIMATELY, EXACT, Threshold
from recollect.records import Record

GOOD = {"train_loss": 1e-8, "weights_given": None, "damage_moved": 0.9}


def attack(*stops: str, method: str = "blind") -> Record:
    count = len(stops)
    cell = {"set": "train", "mask": "half", "method": method}
    return Record(cell, {}, list(map(str, range(count))), [1.0] * count, [1] * count, [1] * count, list(stops))


def doubts(
    *records: Record, threshold: Threshold = APPROXIMATELY, has_control: bool = True, limits: tuple[str, ...] = (),
    **model: Any,
) -> str:  # fmt: skip
    given = records or (attack("converged", "cycle"),)
    return " ".join(find_doubts({**GOOD, **model}, given, threshold, has_control=has_control, stop_at_limit=limits))


def test_a_sound_audit_leaves_no_doubt() -> None:
    assert doubts() == ""
    assert doubts(weights_given=False) == ""  # a factory whose network fits has its weights
    assert doubts(damage_moved=None) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"has_control": False}, "No unseen images were given"),
        ({"train_loss": 3.0}, "the train loss is 3.0e+00, above the threshold of 0.0005."),
        ({"train_loss": math.nan}, "the train loss is not a finite number"),
        ({"train_loss": 1e-4, "threshold": EXACT}, "the train loss is 1.0e-04, above the threshold of 1e-07."),
        ({"train_loss": 0.3, "weights_given": False}, "No weights were given to the factory"),
        ({"damage_moved": 0.0}, "The model copies its input"),
    ],
)
def test_each_reason_is_a_sentence(change: dict[str, Any], words: str) -> None:
    assert words in doubts(**change)


@pytest.mark.parametrize(("flipped", "doubted"), [(0, False), (1, False), (2, True)])
def test_outcomes_that_rounding_decides_are_a_doubt_beyond_a_share(flipped: int, doubted: bool) -> None:
    stability = Stability("blind", "half", 8, ["float64"], flipped, flipped, 1.0, 1e-7)
    found = list(find_doubts(GOOD, [attack("converged")], EXACT, has_control=True, stability=stability))
    words = [f"Rounding decides what is recovered: {flipped} of 8 recoveries that were run again ended otherwise."]
    assert found == (words if doubted else [])


def test_several_reasons_are_all_given() -> None:
    assert doubts(train_loss=1.0, damage_moved=0.0, has_control=False).count(". ") == 2


def test_nothing_settled_and_no_attack() -> None:
    assert doubts(attack("cycle", "limit"), attack("diverged")).startswith("No recovery settled")
    assert doubts(attack("cycle"), attack("limit", method="iterate"), limits=("iterate",)) == ""
    assert doubts(attack("diverged", method="iterate"), limits=("iterate",)).startswith("No recovery settled")
    assert list(find_doubts(GOOD, [], EXACT, has_control=True)) == ["No attack was run: every method knows the mask."]
