import json
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
