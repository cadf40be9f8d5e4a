import json
from pathlib import Path

import pytest

from tests.benchmarks.running import run


@pytest.mark.parametrize("case", ["demo", pytest.param("unet", marks=pytest.mark.slow)])
def test_the_benchmark_runs(case: str, tmp_path: Path) -> None:
    """That it runs, and what it says; never how fast."""
    out = tmp_path / "numbers.json"
    shown = run("training", "--case", case, "--quick", "--device", "cpu", "--json", str(out), "--rates", "1e-3")
    head, first = shown.splitlines()[1:3]
    assert head.split() == ["train", "loss", "recollect", "plain", "Adam", "0.001", "ratio"]
    assert first.split()[0] == "1e-04"
    numbers = json.loads(out.read_text())
    assert [c["name"] for c in numbers["contenders"]] == ["recollect", "plain Adam 0.001"]
    assert all(c["steps"] > 0 for c in numbers["contenders"])
    assert numbers["data_hash"]
    assert numbers["versions"]["torch"]
