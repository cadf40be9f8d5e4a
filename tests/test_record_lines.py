import json
from pathlib import Path
from typing import Any

import pytest

from recollect import InputError
from recollect.record_lines import RECORD_LINE, read_records_of, record_line, sealed_line, write_lines
from recollect.records import Record

RECORD = Record(
    {"set": "train", "mask": "half", "method": "blind"}, {"gamma": 0.5}, [], [1e-9, 0.25, 1e-3], [3, 4, 5],
    [120, 160, 200], ["converged", "cycle", "converged"], mask_accuracy=[1.0, 0.5, 0.25],
    mask_iou=[1.0, 0.5, 0.25], seconds=1.5, provenance={"device": "a"},
)  # fmt: skip
SAME = Record(
    {"set": "train", "mask": "half", "method": "known"}, {}, ["a", "b"], [1e-9, None], [1, 1], [40, 41], ["done"] * 2,  # type: ignore[list-item]
    pictures_hash="0" * 64, mse_pasted=[1e-9, 1e-3], cycles=[[1, 2, 1e-4, 1e-3]],
)  # fmt: skip
EMPTY = Record({"method": "known"}, {}, [], [], [], [], [])


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_lines(path, map(record_line, (RECORD, SAME, EMPTY)))
    assert read_records_of(path) == [RECORD, SAME, EMPTY]
    assert [json.loads(line)["cell"]["method"] for line in path.read_text().splitlines()] == ["blind", "known", "known"]


def test_a_column_that_repeats_itself_is_short() -> None:
    line = json.loads(record_line(RECORD))
    assert line["stop"] == {"others": "converged", "cycle": [1]}
    assert line["steps"] == 40
    assert json.loads(record_line(SAME))["rounds"] == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stop": None}, "how its images ended"), ({"stop": {"others": "converged", "cycle": [3]}}, "has no image 3"),
        ({"stop": {"others": 1}}, "its stop are not what they should be"), ({"mse": ""}, "not a record that can be"),
        ({"odd": 1}, "parts missing or unknown: odd"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_refused_by_its_number(
    change: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    data = {
        name: value for name, value in json.loads(record_line(RECORD)).items() if name not in ("format", "checksum")
    }
    write_lines(tmp_path / "a.jsonl", [record_line(RECORD), sealed_line(RECORD_LINE, data | change)])
    with pytest.raises(InputError, match=rf"a\.jsonl, line 2, .*{problem}"):
        read_records_of(tmp_path / "a.jsonl")


def test_a_line_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[1]\n")
    with pytest.raises(InputError, match="line 1, is no JSON object"):
        read_records_of(tmp_path / "a.jsonl")
