"""That it times the monitor and finds both onsets, and that the page shows what the saved run holds."""

import json
from functools import partial
from pathlib import Path

from tests.benchmarks import running
from tests.benchmarks.running import ROOT

run, refused = (partial(function, "monitor") for function in (running.run, running.refused))
RECORD = ROOT / "results/monitor.json"


def test_every_checkpoint_is_audited_both_ways(tmp_path: Path) -> None:
    out = tmp_path / "monitor.json"
    small = ["--count", "12", "--size", "8", "--width", "32", "--every", "2", "--checkpoints", "2", "--sample", "8"]
    shown = run(*small, "--masks", "block", "--out", str(out))
    results = json.loads(out.read_text())
    assert [row["epoch"] for row in results["checkpoints"]] == [2, 4]
    assert results["checkpoints"][0]["monitor"]["total"] == 8
    assert results["checkpoints"][0]["audit"]["train"]["total"] == 12
    assert results["overhead"] > 0
    assert run("--tables", str(out)) == shown


def test_the_record_keeps_what_the_page_says() -> None:
    results = json.loads(RECORD.read_text())
    assert results["overhead"] < 0.03
    assert abs(results["onset"] - results["onset_of_full_audits"]) <= results["every"]
    page = (ROOT / "docs/research/monitor.md").read_text()
    for line in run("--tables", str(RECORD)).splitlines():
        assert line in page


def test_mistakes_are_told_in_a_sentence() -> None:
    assert "was not written by this benchmark" in refused("--tables", str(ROOT / "results/layer-kernels.json"))
