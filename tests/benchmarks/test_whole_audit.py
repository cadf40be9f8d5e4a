"""That it runs and counts; times are no test's business."""

from pathlib import Path
from typing import NoReturn

import pytest

from recollect.records import read_json
from tests.benchmarks.running import benchmark, run

whole_audit = benchmark("whole_audit")


def test_an_audit_prepares_its_network_a_few_times_and_not_for_every_cell(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    printed = run("whole_audit", "--cases", "quick", "--masks", "block,dust", "--methods", "blind", "--out", str(out))
    case = read_json(out)["cases"]["quick"]
    assert case["cells"] == 8
    assert case["counts"]["prepared networks"] < case["cells"]
    profiled = [row["seconds"] for row in case["profile"]]
    assert "auditing/run.py:run_audit" in {row["function"] for row in case["profile"]}  # which calls all others
    assert profiled == sorted(profiled, reverse=True)
    assert f"| quick | 8 | {case['audit_seconds']:.1f} |" in printed


def test_times_are_kept_where_the_profile_is_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    out = tmp_path / "audit.json"
    monkeypatch.setattr(whole_audit, "profile_of", killed)
    with pytest.raises(KeyboardInterrupt):
        run("whole_audit", "--cases", "quick", "--masks", "block", "--methods", "iterate", "--out", str(out))
    case = read_json(out)["cases"]["quick"]
    assert case["ratio"] == case["audit_seconds"] / case["recoveries_seconds"]
    assert case["profile"] == []
