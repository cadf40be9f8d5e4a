"""A small part of make torture, always the same."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.torture.formats import FORMATS
from tests.warm import run

TORTURE = "import runpy; runpy.run_module('tests.torture', run_name='__main__', alter_sys=True)"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Run the sample in a process of its own, which forks."""
    out = tmp_path_factory.mktemp("torture")
    ended = run(TORTURE, "--sample", "--seed", "1", "--out", str(out))
    assert (out / "summary.json").exists(), ended.err
    return json.loads((out / "summary.json").read_text())


def test_nothing_fails(summary: Mapping[str, Any]) -> None:
    assert summary["problems"] == []


def test_every_format_and_scenario_was_tried(summary: Mapping[str, Any]) -> None:
    scenarios = summary["scenarios"]
    assert set(scenarios) == {"files", "kills", "records", "faults"}
    assert set(scenarios["files"]["subjects"]) == set(FORMATS)
    assert scenarios["files"]["total"]["refused"] > len(FORMATS)
    assert (scenarios["kills"]["total"]["trials"], scenarios["kills"]["total"]["kills"]) == (1, 1)
