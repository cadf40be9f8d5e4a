"""Run the tests of methods, engine and audits in a copy of the package that has no `accelerate` folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTED = ["tests/methods", "tests/engine", "tests/auditing"]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        for name in ("recollect", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        shutil.rmtree(copy / "recollect" / "accelerate")
        shutil.rmtree(copy / "tests" / "accelerate")
        command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", *TESTED]
        return subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
