"""Run the tests of methods, engine and audits in a copy of the package that has no `accelerate` folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTED = ["tests/methods", "tests/engine", "tests/auditing"]
# Python runs this file of the copy when it starts. An editable installation would find the folder in the checkout.
FORGET_INSTALLATION = """
import sys

sys.meta_path = [finder for finder in sys.meta_path if "__editable__" not in getattr(finder, "__module__", "")]
"""
IS_ABSENT = "from importlib.util import find_spec; assert find_spec('recollect.accelerate') is None"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        for name in ("recollect", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "CONTRIBUTING.md"):  # tests read the second
            shutil.copy(ROOT / name, copy)
        shutil.rmtree(copy / "recollect" / "accelerate")
        shutil.rmtree(copy / "tests" / "accelerate")
        (copy / "sitecustomize.py").write_text(FORGET_INSTALLATION)
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        subprocess.run([sys.executable, "-c", IS_ABSENT], cwd=copy, env=environment, check=True)
        command = [sys.executable, "-m", "pytest", "-n", "2", *TESTED]
        return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
