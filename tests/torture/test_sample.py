"""A small part of make torture, always the same."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.torture.formats import FORMATS


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Run the sample in a process of its own, which forks."""
    out = tmp_path_factory.mktemp("torture")
    command = [sys.executable, "-m", "tests.torture", "--sample", "--seed", "1", "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (out / "summary.json").exists(), ended.stderr
    return json.loads((out / "summary.json").read_text())


def test_nothing_fails(summary: Mapping[str, Any]) -> None:
    assert summary["problems"] == []


def test_every_format_and_scenario_was_tried(summary: Mapping[str, Any]) -> None:
    scenarios = summary["scenarios"]
    assert set(scenarios) == {"files", "kills", "records", "faults"}
    assert set(scenarios["files"]["subjects"]) == set(FORMATS)
    assert scenarios["files"]["total"]["refused"] > len(FORMATS)
    assert scenarios["kills"]["total"]["trials"] == 1  # on a machine that changes its pace it may end before its kill
