import subprocess
import sys
from pathlib import Path

from recollect.priors import train_prior
from tests.priors.making import TINY, pictures

ROOT = Path(__file__).parents[2]


def test_the_benchmark_runs(tmp_path: Path) -> None:
    """That it runs, and what it says; never how good a prior of a moment is."""
    train_prior(pictures(), tmp_path / "prior", max_seconds=0.2, recipe=TINY, device="cpu", samples=0)
    command = [sys.executable, "benchmarks/prior.py", "--prior", str(tmp_path / "prior"), "--masks", "scatter,stripes"]
    command += [
        "--images",
        "photos?count=3&size=8",
        "--steps",
        "5",
        "--draws",
        "1",
        "2",
        "--save",
        str(tmp_path / "restored.npz"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, prior, head, *rows = done.stdout.splitlines()
    assert "trained on pictures-0; among these: none of 3" in prior
    assert "ddnm 5, eta 0.85, 2 drawn" in head
    assert head.split()[-1] == "biharmonic"
    assert [row.split()[0] for row in rows] == ["scatter", "stripes"]
    assert (tmp_path / "restored.npz").exists()
