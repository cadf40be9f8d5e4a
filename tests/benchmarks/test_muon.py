import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_both_train_and_need_about_as_many_steps() -> None:
    options = ["--images", "photos?count=3&size=8", "--layers", "3", "--width", "32", "--loss", "1e-4"]
    command = [sys.executable, "benchmarks/muon.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+): loss (\S+) after (\d+) steps of \S+ ms$", done.stdout, re.M)
    assert [name for name, _, _ in rows] == ["recollect", "torch"]
    assert all(float(loss) <= 1e-4 for _, loss, _ in rows)
    ours, theirs = (int(steps) for _, _, steps in rows)
    assert 0.5 < ours / theirs < 2
