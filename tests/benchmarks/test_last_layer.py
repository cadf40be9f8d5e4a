"""That it runs and says what it found, and that the page shows what the saved run holds."""

import json
from functools import partial
from pathlib import Path

from tests.benchmarks import running
from tests.benchmarks.running import ROOT

run, refused = (partial(function, "last_layer") for function in (running.run, running.refused))


def test_both_ways_are_counted(tmp_path: Path) -> None:
    out = tmp_path / "last-layer.json"
    small = ["--images", "photos?count=3&size=8", "--layers", "3", "--width", "32", "--losses", "1e-6"]
    shown = run(*small, "--max-seconds", "3600", "--max-steps", "20000", "--out", str(out))
    rows = json.loads(out.read_text())["rows"]
    assert [row["solved"] for row in rows] == [True, False]
    assert all(row["loss"] < 1e-6 for row in rows)
    assert "| solved for | " in shown
    assert run("--tables", str(out)) == shown


def test_mistakes_are_told_in_a_sentence() -> None:
    assert "was not written by this benchmark" in refused("--tables", str(ROOT / "results/layer-kernels.json"))
    assert "count" in refused("--images", "photos?count=nine")
