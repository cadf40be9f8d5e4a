"""That memorized canaries refute an epsilon, that DP-SGD is not accused, and that the page shows the saved run."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks import running
from tests.benchmarks.running import ROOT

run = partial(running.run, "canaries")


@pytest.mark.slow
def test_both_kinds_of_training(tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    out = tmp_path / "canaries.json"
    quick = [
        "--size",
        "8",
        "--layers",
        "2",
        "--width",
        "128",
        "--loss",
        "1e-2",
        "--count",
        "60",
        "--small-count",
        "60",
        "--runs",
        "1",
    ]
    shown = run(*quick, "--steps", "3", "--out", str(out))
    record = json.loads(out.read_text())
    assert [group["repeats"] for group in record["memorizing"]["groups"]] == [1, 4, 16]
    assert 0.8 < record["private"]["accounted_epsilon"] <= 1
    assert record["private"]["above"] == 0
    assert run("--tables", str(out)) == shown


def test_the_record_holds_what_is_claimed() -> None:
    record = json.loads((ROOT / "results/canaries.json").read_text())
    assert record["memorizing"]["epsilon"] > 0
    assert record["private"]["runs"] == 20
    assert record["private"]["above"] <= 1
