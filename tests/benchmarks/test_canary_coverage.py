"""That the bound holds as often as it claims, and that the page shows what the saved run holds."""

import json
from functools import partial
from pathlib import Path

from tests.benchmarks import running
from tests.benchmarks.running import ROOT, benchmark

run, refused = (partial(function, "canary_coverage") for function in (running.run, running.refused))


def test_a_few_audits(tmp_path: Path) -> None:
    out = tmp_path / "coverage.json"
    shown = run("--audits", "60", "--count", "60", "--out", str(out))
    rows = json.loads(out.read_text())["rows"]
    assert all(row["coverage"] > 0.9 for row in rows)  # of 60, at 95% and more
    assert any(row["mean_bound"] > 0.5 for row in rows)
    assert run("--tables", str(out)) == shown
    assert "was not written by this benchmark" in refused("--tables", str(ROOT / "results/layer-kernels.json"))


def test_the_gaussian_mechanism_has_the_delta_of_its_definition() -> None:
    import numpy as np
    from scipy.integrate import quad
    from scipy.stats import norm

    def excess(x: float) -> float:  # of the density with a canary over e^eps times that without
        return max(0.0, float(norm.pdf(x, 1, 2) - np.exp(0.5) * norm.pdf(x, 0, 2)))

    delta = quad(excess, -20, 25, limit=200)[0]
    assert abs(benchmark("canary_coverage").gaussian_delta(2.0, 0.5) - delta) < 1e-6


def test_ten_thousand_audits_are_on_record() -> None:
    record = json.loads((ROOT / "results/canary-coverage.json").read_text())
    assert record["audits"] == 10_000
    assert all(row["coverage"] >= 0.95 for row in record["rows"])
