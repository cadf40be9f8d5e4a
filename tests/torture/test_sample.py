"""A small part of make torture, always the same."""

import json
from pathlib import Path

import pytest

from tests.torture.formats import FORMATS
from tests.warm import run

TORTURE = "import runpy; runpy.run_module('tests.torture', run_name='__main__', alter_sys=True)"


@pytest.mark.slow
def test_nothing_fails_and_every_format_and_scenario_is_tried(tmp_path: Path) -> None:
    """One test for all: two workers that share them would run the sample twice."""
    ended = run(TORTURE, "--sample", "--seed", "1", "--out", str(tmp_path))
    assert (tmp_path / "summary.json").exists(), ended.err
    summary = json.loads((tmp_path / "summary.json").read_text())
    scenarios = summary["scenarios"]
    assert summary["problems"] == []
    assert set(scenarios) == {"files", "kills", "records", "faults"}
    assert set(scenarios["files"]["subjects"]) == set(FORMATS)
    assert scenarios["files"]["total"]["refused"] > len(FORMATS)
    assert (scenarios["kills"]["total"]["trials"], scenarios["kills"]["total"]["kills"]) == (1, 1)
