import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/recovery.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_benchmark_runs(tmp_path: Path) -> None:
    """That it runs, and that all contenders agree; never how fast."""
    out = tmp_path / "numbers.json"
    shown = run("--cases", "quick", "--growth", "12", "30", "--budget", "100", "--threads", "1", "--out", str(out))
    assert "| quick | 12 |" in shown
    numbers = json.loads(out.read_text())
    case = numbers["cases"]["quick"]
    assert case["image_steps"] == sum(case["batch_sizes"]) * 39
    for contender in ("one_by_one", "batched"):
        assert case[contender]["difference"]["settled"] > 0
        assert case[contender]["difference"]["largest"] < 1e-4
    assert [row["images"] for row in numbers["growth"]["quick"]] == [12, 30]
    assert run("--tables", str(out)) in shown


@pytest.mark.parametrize("name", ["speed-cpu.json", "speed-gpu.json"])
def test_the_page_shows_the_numbers_on_record(name: str) -> None:
    page = (ROOT / "docs/performance.md").read_text()
    for line in run("--tables", f"results/{name}").splitlines():
        assert line in page
