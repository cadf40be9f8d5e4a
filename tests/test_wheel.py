"""A wheel holds all that the package needs without the repository."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

import pytest

from recollect.version import __version__
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


def without_repository() -> dict[str, str]:
    """Leave out the path to the repository: pip takes a package that lies there for installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel where only it and this environment's other packages can be imported; gives the environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "recollect"):
        subprocess.run(["cp", "-r", ROOT / name, source], check=True)
    pip, here = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *here, "--no-build-isolation", "-w", folder, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    install: list[str | Path] = [*pip, "--python", python, "install", *here, next(folder.glob("*.whl"))]
    subprocess.run(install, check=True, env=without_repository())
    packages = next(environment.glob("lib/python*/site-packages"))
    # A path in a .pth file is searched, and .pth files in it are not read: the repository's own among them.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return environment


def started(installed: Path, folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start a program of the environment in another folder, without the repository."""
    program, pipe = installed / "bin" / command[0], subprocess.PIPE
    return subprocess.Popen(
        [program, *command[1:]], cwd=folder, stdout=pipe, stderr=pipe, text=True, env=without_repository()
    )


def runs(installed: Path, folder: Path, *command: str) -> str:
    """Run a program to its end, and give what it prints."""
    process = started(installed, folder, *command)
    shown, errors = process.communicate()
    assert process.returncode == 0, errors
    return shown


@pytest.mark.slow
def test_the_wheel_brings_its_files(installed: Path, tmp_path: Path) -> None:
    code = "import recollect.diffusion as d; print(d.__file__); print(d.bundled().shape)"
    file, shape = runs(installed, tmp_path, "python", "-c", code).splitlines()
    assert Path(file).is_relative_to(installed)
    assert shape == "(3, 32, 32)"


@pytest.mark.slow
def test_the_command_line_of_the_wheel_trains_audits_and_reports(installed: Path, tmp_path: Path) -> None:
    assert runs(installed, tmp_path, "recollect", "--version") == f"recollect {__version__}\n"
    code = (
        "import recollect as r; from recollect.checkpoints import save_checkpoint; "
        "save_checkpoint('m.safetensors', r.FullyConnected((3, 8, 8), layers=2, width=8, seed=0), {})"
    )
    runs(installed, tmp_path, "python", "-c", code)
    audit = ["audit", "m.safetensors", "--train", "photos?count=4&size=8", "--masks", "half", "--methods", "iterate"]
    assert "Attacks recover 0 of 4 training images from this model" in runs(installed, tmp_path, "recollect", *audit)
    assert (tmp_path / "audit" / "report.html").stat().st_size > 10_000
    assert runs(installed, tmp_path, "recollect", "verify", "audit").startswith("Verified: ")


@pytest.mark.slow
def test_the_demo_of_the_wheel_trains_until_it_is_interrupted(installed: Path, tmp_path: Path) -> None:
    """Its first losses show that photographs, network and training are all there; the whole demo takes minutes."""
    process, losses = started(installed, tmp_path, "recollect", "demo"), tmp_path / "demo" / "training" / "loss.csv"
    while not losses.exists() or len(losses.read_text().splitlines()) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate()
    assert "Training, to a mean square error of 1e-8" in shown
    assert "the same command resumes it" in errors
    assert process.returncode == 128 + signal.SIGINT
