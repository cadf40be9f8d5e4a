"""That it trains each length with each recipe, and says what was recovered."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks import running
from tests.benchmarks.running import ROOT, benchmark

run, refused = (partial(function, "shorter_training") for function in (running.run, running.refused))


def test_every_length_is_trained_in_every_way(tmp_path: Path) -> None:
    out = tmp_path / "shorter.json"
    small = ["--images", "photos?count=2&size=8&seed=7", "--widths", "4", "8", "--steps", "20", "40", "--seeds", "42"]
    shown = run(*small, "--out", str(out))
    rows = json.loads(out.read_text())["rows"]
    ends = [row for row in rows if row["wanted"] is None]
    assert [(row["steps"], row["taken"]) for row in ends] == [(20, 20)] * 4 + [(40, 40)] * 4
    assert all(row["masks"].keys() == {"block", "half", "dust"} for row in rows)
    assert "| 40 | no decay | " in shown
    assert run("--tables", str(out)) == shown


def test_a_longer_training_may_have_the_total_decay_of_the_shortest() -> None:
    tools = benchmark("shorter_training")
    network = tools.UNet(channels=3, widths=[4, 8])
    decays = [tools.recipe_of(variant, network, 2, 8000, 2000, 42).weight_decay for variant in tools.VARIANTS]
    assert decays == pytest.approx([0.2, 0.05, 0.0, 0.2])


def test_mistakes_are_told_in_a_sentence() -> None:
    assert "was not written by this benchmark" in refused("--tables", str(ROOT / "results/layer-kernels.json"))
