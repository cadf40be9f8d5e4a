"""That it runs and says what it found, and that the page shows what is on record."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/last_layer.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


def test_both_ways_are_counted(tmp_path: Path) -> None:
    out = tmp_path / "last-layer.json"
    small = ["--images", "photos?count=3&size=8", "--layers", "3", "--width", "32", "--losses", "1e-6"]
    shown = run(*small, "--max-seconds", "30", "--out", str(out))
    rows = json.loads(out.read_text())["rows"]
    assert [row["solved"] for row in rows] == [True, False]
    assert all(row["loss"] < 1e-6 for row in rows)
    assert "| solved for | " in shown
    assert run("--tables", str(out)) == shown


def test_mistakes_are_told_in_a_sentence() -> None:
    assert "was not written by this benchmark" in run("--tables", "results/products.json")
    assert "Traceback" not in run("--images", "photos?count=nine")


def test_the_page_shows_the_numbers_on_record() -> None:
    page = (ROOT / "docs/reproduction.md").read_text()
    for line in run("--tables", "results/last-layer.json").splitlines():
        assert line in page
