import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.running import ROOT, benchmark, run

coverage = benchmark("extraction_coverage")


def test_it_counts_how_often_the_bound_holds(tmp_path: Path) -> None:
    out = tmp_path / "coverage.json"
    printed = run(
        "extraction_coverage", "--repeats", "2", "--sizes", "6", "--samples", "12", "--json", str(out)
    )  # fmt: skip
    rows = json.loads(out.read_text())["rows"]
    assert [row["kind"] for row in rows] == list(coverage.KINDS)
    assert all(0 <= row["held"] <= 2 and row["seen"] <= row["at_least"] <= row["estimate"] for row in rows)
    assert "| even | 6 | 12 |" in printed


def test_the_two_sided_interval_by_hand() -> None:
    """3 seen once and 2 twice of 6, in 11 draws: 10/11 * 9/4 unseen."""
    low, high = coverage.two_sided(np.array([1, 1, 1, 2, 2, 4]))
    unseen = 10 / 11 * 9 / 4
    assert 6 < low < 6 + unseen < high
    assert (low - 6) * (high - 6) == pytest.approx(unseen**2)
    assert coverage.two_sided(np.array([], int)) == (0.0, 0.0)


def test_the_committed_record_holds_the_bound_in_95_of_100_extractions() -> None:
    rows = json.loads((ROOT / "results" / "extraction-coverage.json").read_text())["rows"]
    assert sum(row["held"] for row in rows) >= 0.95 * sum(row["extractions"] for row in rows)


def test_the_page_shows_what_the_committed_record_says() -> None:
    rows = json.loads((ROOT / "results" / "extraction-coverage.json").read_text())["rows"]
    page = (ROOT / "docs" / "research" / "ablations.md").read_text()
    for kind, name in (("even", "alike"), ("uneven", "unlike"), ("families", "families")):
        own = [row for row in rows if row["kind"] == kind]
        total = sum(row["extractions"] for row in own)
        held, two_sided = (f"{sum(row[what] for row in own)} of {total}" for what in ("held", "two_sided"))
        (largest,) = [row for row in own if (row["stored"], row["samples"]) == (160, 640)]
        means = " | ".join(f"{largest[what]:.0f}" for what in ("seen", "at_least", "estimate"))
        assert re.search(rf"^\| {name}[^|]*\| {held} \| {two_sided} \| {re.escape(means)} \|$", page, re.MULTILINE)
    extractions = sum(row["extractions"] for row in rows)
    guide = " ".join((ROOT / "docs" / "guide" / "extract.md").read_text().split())
    assert f"the bound held in {extractions} of {extractions} extractions" in guide
    assert all(row["held"] == row["extractions"] for row in rows)
