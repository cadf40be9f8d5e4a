import json
from pathlib import Path

import pytest

from tests.benchmarks.running import ROOT, run


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


@pytest.mark.parametrize("name", ["training-cpu.json", "training-gpu.json"])
def test_the_page_shows_the_numbers_on_record(name: str) -> None:
    numbers = json.loads((ROOT / "results" / name).read_text())
    rows = [line for line in (ROOT / "docs/concepts/training.md").read_text().splitlines() if line.startswith("| 1e-")]
    for milestone in numbers["milestones"]:
        key = repr(milestone)
        cells = [
            f"{c['reached'][key]:.1f} s ({c['steps_to'][key]})" if key in c["reached"] else "not in"
            for c in numbers["contenders"]
        ]
        start = f"| {milestone:.0e} |".replace("e-0", "e-")
        assert any(row.startswith(start) and all(cell in row for cell in cells) for row in rows)
