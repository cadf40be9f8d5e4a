import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from recollect.auditing.doubts import Evidence, find_doubts
from recollect.auditing.stability import Stability
from recollect.auditing.thresholds import APPROXIMATELY, EXACT, Threshold
from recollect.models import Probe
from recollect.records import Record
from recollect.scoring import Score

GOOD = {"train_loss": 1e-8, "weights_given": None, "damage_moved": 0.9}
SOUND = Probe(1e-8, deterministic=True, images=8)


def attack(*stops: str, method: str = "blind") -> Record:
    count = len(stops)
    cell = {"set": "train", "mask": "half", "method": method}
    return Record(cell, {}, list(map(str, range(count))), [1.0] * count, [1] * count, [1] * count, list(stops))


def unseen(*errors: float) -> Score:
    return Score(np.array([*errors, *[0.1] * (20 - len(errors))]))


def doubts(
    *records: Record, threshold: Threshold = APPROXIMATELY, model: dict[str, Any] | None = None, **evidence: Any
) -> str:
    given: Sequence[Record] = records or (attack("converged", "cycle"),)
    evidence = {"probe": SOUND, "control": unseen(), **evidence}
    return " ".join(find_doubts(Evidence(GOOD | (model or {}), attacks=given, **evidence), threshold))


def test_a_sound_audit_leaves_no_doubt() -> None:
    assert doubts() == ""
    assert doubts(model={"weights_given": False}) == ""  # a factory whose network fits has its weights
    assert doubts(model={"damage_moved": None}) == ""
    assert doubts(control=unseen(1e-9, *[1e-4] * 9)) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"control": None}, "No unseen images were given"),
        ({"control": unseen(*[1e-4] * 11)}, "11 of 20 unseen images are recovered too"),
        ({"control": unseen(1e-9, 1e-9)}, "2 of 20 unseen images are recovered accurately: the model was trained"),
        ({"model": {"train_loss": 3.0}}, "the train loss is 3.0e+00, above the threshold of 0.0005."),
        ({"model": {"train_loss": math.nan}}, "the train loss is not a finite number"),
        (
            {"model": {"train_loss": 1e-4}, "threshold": EXACT},
            "the train loss is 1.0e-04, above the threshold of 1e-07",
        ),
        ({"model": {"train_loss": 0.3, "weights_given": False}}, "No weights were given to the factory"),
        ({"model": {"damage_moved": 0.0}}, "The model copies its input"),
        ({"probe": Probe(0.0, False, 8, None)}, "The model is not deterministic"),
        ({"probe": Probe(0.0, True, 8, 0.1)}, "Outputs depend on the other images of a batch"),
        ({"strongest_left_out": "refined"}, "The attack refined, usually the strongest, was not run"),
        ({"weaknesses": ["this", "that"]}, "The settings of the strongest attack weaken it: this and that."),
        ({"model": {"train_loss": 0.0}, "threshold": Threshold("own", 1e-12)}, "The threshold of 1e-12 is below 1e-07"),
    ],
)
def test_each_reason_is_a_sentence(change: dict[str, Any], words: str) -> None:
    assert words in doubts(**change)


@pytest.mark.parametrize(("flipped", "doubted"), [(0, False), (1, False), (2, True)])
def test_outcomes_that_rounding_decides_are_a_doubt_beyond_a_share(flipped: int, doubted: bool) -> None:
    stability = Stability("blind", "half", 8, ["float64"], flipped, flipped, 1.0, 1e-7)
    words = f"Rounding decides what is recovered: {flipped} of 8 recoveries that were run again ended otherwise."
    assert doubts(attack("converged"), threshold=EXACT, stability=stability) == (words if doubted else "")


def test_several_reasons_are_all_given() -> None:
    assert doubts(model={"train_loss": 1.0, "damage_moved": 0.0}, control=None).count(". ") == 2


def test_too_few_settled_and_no_attack() -> None:
    assert doubts(attack("cycle", "limit"), attack("diverged", "cycle")).startswith("No recovery settled")
    few = attack("converged", "cycle", "limit")
    assert doubts(few).startswith("Recoveries of only 1 of 3 images settled")
    assert doubts(few, attack("cycle", "done", "cycle")) == ""
    at_limit = attack("limit", method="iterate")
    assert doubts(attack("cycle"), at_limit, stop_at_limit=("iterate",)) == ""
    assert doubts(attack("diverged", method="iterate"), stop_at_limit=("iterate",)).startswith("No recovery settled")
    nothing_run = Evidence(GOOD, SOUND, [], unseen())
    assert list(find_doubts(nothing_run, EXACT)) == ["No attack was run: every method knows the mask."]
