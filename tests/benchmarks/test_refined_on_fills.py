import json
from pathlib import Path

import pytest
import torch

from tests.benchmarks.running import benchmark, run

refined_on_fills = benchmark("refined_on_fills")


def test_the_benchmark_runs_on_a_plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it runs on a toy, and what it says; never how well."""
    toy = refined_on_fills.Planted("photos?count=6&size=8", gamma=0.5, sharpness=60.0)
    monkeypatch.setitem(refined_on_fills.CASES, "toy", toy)
    out = tmp_path / "numbers.json"
    threads = str(torch.get_num_threads())
    printed = run(
        "refined_on_fills", "--cache", str(tmp_path), "--cases", "toy", "--fills", "zero,noise", "--count", "3",
        "--threads", threads, "--json", str(out),
    )  # fmt: skip
    rows = json.loads(out.read_text())["rows"]
    assert [(row["set"], row["fill"]) for row in rows] == [
        ("train", "zero"), ("train", "noise"), ("unseen", "zero"), ("unseen", "noise")
    ]  # fmt: skip
    assert "below blind or iterate: 0 of 2 cells" in printed


def test_a_cell_is_below_if_either_attack_recovers_more() -> None:
    cells = [{"blind": 1, "iterate": 2, "refined": 2}, {"blind": 3, "iterate": 0, "refined": 2}]
    assert refined_on_fills.below([{"accurate": cell} for cell in cells]) == 1
