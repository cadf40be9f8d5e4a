"""A wheel holds all that the package needs without the repository."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.read_only_repository import ROOT

PACKAGE = ROOT / "recollect"


def test_every_file_of_the_package_is_named_for_the_wheel() -> None:
    """Setuptools takes the modules of packages, and of other files those that pyproject.toml names."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["recollect"]
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    taken = {path for pattern in named for path in PACKAGE.glob(pattern)}
    left_out = [path for path in files if path.suffix != ".py" and path not in taken]
    without_package = [path for path in files if path.suffix == ".py" and not (path.parent / "__init__.py").exists()]
    assert len(files) > 300
    assert [*left_out, *without_package] == []


@pytest.mark.slow
def test_the_wheel_runs_outside_the_repository(tmp_path: Path) -> None:
    source, unpacked = tmp_path / "source", tmp_path / "unpacked"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "recollect"):
        subprocess.run(["cp", "-r", ROOT / name, source], check=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(unpacked)
    code = "import recollect.diffusion as d; print(d.__file__); print(d.bundled().shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
    )  # fmt: skip
    assert done.stdout == f"{unpacked}/recollect/diffusion/__init__.py\n(3, 32, 32)\n"
