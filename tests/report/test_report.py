"""The file itself, read without a browser: complete where parts are absent, and whole in one file."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect.records import Record
from recollect.report import write_report
from recollect.report.numbers import flattened, grey_levels, plain_value, scientific
from recollect.report.page import render
from recollect.report.plots import Scale, corners
from recollect.report.read import Audit
from tests.report.making import Making


def test_it_is_one_file_that_names_no_other(report: Path) -> None:
    text = report.read_text()
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", text)
    assert not re.search(r"https?://", text)
    assert "@import" not in text
    assert "url(" not in text
    assert "innerHTML" not in text  # the script writes text, never markup


def test_it_can_be_read_without_its_script(report: Path, planted: Making) -> None:
    text = report.read_text()
    for record in planted.records:
        assert f">{record.score.approximate.value:.1%}<" in text
    for words in ("Warning", "Weights were trained in TF32", planted.facts["command"], planted.facts["headline"]):
        assert words.lower() in text.lower()


def test_the_embedded_errors_are_exact(report: Path, planted: Making) -> None:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.read_text(), re.DOTALL)
    assert found
    errors = json.loads(found.group(1))["errors"]
    unpacked = [np.frombuffer(base64.b64decode(text), "<f8").tolist() for text in errors]
    assert sorted(unpacked) == sorted(r.mse for r in planted.records)


@pytest.mark.parametrize("without", ["control", "samples", "traces", "attractors", "membership", "all"])
def test_optional_parts_may_be_absent(planted: Making, tmp_path: Path, without: str) -> None:
    gone = ("control", "samples", "traces", "attractors", "membership") if without == "all" else (without,)
    records = [r for r in planted.records if "control" not in gone or r.cell["set"] == "train"]
    facts = {**planted.facts, **dict.fromkeys(set(gone) & set(planted.facts))}
    if "control" in gone:
        facts["summary"] = [row for row in facts["summary"] if row["set"] == "train"]
    made = Making(
        records, {} if "samples" in gone else planted.samples, {} if "traces" in gone else planted.traces, facts
    )
    text = write_report(made.write(tmp_path)).read_text()
    assert ('id="gallery"' in text) == ("samples" not in gone)
    assert ('id="watch"' in text) == ("traces" not in gone)
    assert ("Are training images attractors?" in text) == ("attractors" not in gone)
    assert ("Does recovery tell training" in text) == ("membership" not in gone)
    assert ("nothing to be compared with" in text) == ("control" in gone)


def test_what_the_audit_says_of_train_above_control_is_shown(planted: Making) -> None:
    row = {"mask": "block", "method": "blind", "accurate": {"value": 0.5, "low": 0.25, "high": 0.75}}
    text = render(Audit({"excess": [row]}, planted.records, {}, {}))
    assert text.count("+50.0% [+25.0%, +75.0%]") == 1
    assert "Above control" not in render(Audit({}, planted.records, {}, {}))


def test_a_bare_record_is_enough(planted: Making) -> None:
    bare = replace(planted.records[0], mask_accuracy=None, mask_iou=None)
    assert "<h1>" in render(Audit({}, [bare], {}, {}))


def test_checkpoints_give_a_curve_against_train_loss(planted: Making) -> None:
    def at(record: Record, loss: float) -> Record:
        return replace(record, cell={**record.cell, "milestone": loss}, mse=[e * loss for e in record.mse])

    records = [at(r, loss) for r in planted.records for loss in (1e-4, 1e-6, 1e-8)]
    text = render(Audit({}, records, {}, {}))
    assert "Recovery rate against train loss" in text
    assert text.count("data-pools=") == (2 + 1) * 3 * 2
    assert "Recovery rate against train loss" not in render(Audit({}, planted.records, {}, {}))


def test_numbers_in_words() -> None:
    assert scientific(5e-4) == "5.0 × 10⁻⁴"
    assert scientific(0.0) == "0"
    assert plain_value(1234567) == "1\u202f234\u202f567"
    assert plain_value(0.1) == "0.1"
    assert plain_value([True, None, "a"]) == "yes, –, a"
    assert grey_levels(1.0) == 255
    assert list(flattened({"blind": {"gamma_x": 0.5}})) == [("blind gamma x", "0.5")]


def test_scales_and_corners() -> None:
    assert Scale(1e-8, 1e-4, 0, 100, log=True)(1e-6) == 50
    assert Scale(0, 1, 100, 0)(2) == 0  # never outside the drawing
    assert corners([(0, 0), (1, 0), (2, 0), (2, 1), (2, 1), (2, 3)]) == [(0, 0), (2, 0), (2, 3)]
