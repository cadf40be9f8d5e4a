"""That it runs and counts; times are no test's business."""

from pathlib import Path

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


def test_times_are_known_before_the_profile_is_made() -> None:
    options = whole_audit.parse(["--cases", "quick", "--masks", "block", "--methods", "iterate"])
    before, after = whole_audit.time_case("quick", options)
    assert before == {**after, "profile": []}
    assert before["ratio"] == before["audit_seconds"] / before["recoveries_seconds"]
