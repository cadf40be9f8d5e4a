from typing import Any

import pytest

from recollect.record_schema import problem_of

GOOD: dict[str, Any] = {
    "cell": {}, "settings": {}, "provenance": {}, "seconds": 1.5, "pictures_hash": None, "ids": ["a", "b"],
    "mse": [0.5, None], "rounds": [1, 2], "steps": [40, 80], "stop": ["done", "done"], "mask_accuracy": None,
    "mask_iou": [1.0, None], "nearest": ["c", None], "nearest_index": [2, None],
    "nearest_mse": [0.1, None], "mse_pasted": [0.1, None], "mse_unpasted": None, "cycles": [[1, 2, 0.1, 0.5]],
}  # fmt: skip


def test_a_whole_record_has_no_problem() -> None:
    assert problem_of(GOOD) == ""
    assert problem_of(GOOD | {"ids": []}) == ""  # committed records are without
    assert problem_of(GOOD | {"cycles": None}) == problem_of(GOOD | {"cycles": []}) == ""


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"cell": []}, "its cell is no list of named values"),
        ({"seconds": -1}, "its seconds are no time"),
        ({"seconds": float("inf")}, "its seconds are no time"),
        ({"pictures_hash": 7}, "its pictures_hash is no text"),
        ({"mse": [0.5, -1.0]}, "its mse are not what they should be"),
        ({"mse": "many"}, "its mse are not what they should be"),
        ({"rounds": [1.5, 2]}, "its rounds are not what they should be"),
        ({"mask_iou": [1.2, 0.5]}, "its mask_iou are not what they should be"),
        ({"nearest": [7, None]}, "its nearest are not what they should be"),
        ({"nearest_mse": [0.1]}, "it has 2 errors for 1 nearest_mse"),
        ({"mse": None}, "its mse are not what they should be"),
        ({"steps": [40]}, "it has 2 errors for 1 steps"),
        ({"mse_pasted": [0.1]}, "it has 2 errors for 1 mse_pasted"),
        ({"cycles": {}}, "its cycles are not what they should be"),
        ({"cycles": [[1, 2]]}, "its cycles are not what they should be"),
        ({"cycles": [[1.5, 2, 0.1, 0.5]]}, "its cycles are not what they should be"),
        ({"cycles": [[2, 2, 0.1, 0.5]]}, "it has cycles of images that it does not have"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], problem: str) -> None:
    assert problem_of(GOOD | changed) == problem
