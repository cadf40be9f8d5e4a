"""The start and the end of a command: what it imports, and output that cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.auditing.making import small_audit

FULL = Path("/dev/full")


def end_with(stdout: int, *arguments: str) -> tuple[int, str]:
    """Run the command with this for its output: exit code and stderr."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "recollect", *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
        env=environment,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--version"], "the output cannot be written: No space left"), (["data"], "the disk is full")],
)
def test_output_that_is_full_is_told_in_one_sentence(arguments: list[str], words: str) -> None:
    with FULL.open("wb") as full:
        code, err = end_with(full.fileno(), *arguments)
    assert (code, err.count("\n")) == (1, 1), err
    assert err.startswith(f"recollect: {words}")


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    assert end_with(write, "data") == (1, "")
    os.close(write)


def test_a_library_that_cannot_be_loaded_while_arguments_are_read_is_one_sentence(tmp_path: Path) -> None:
    """With little memory: typer imports pydantic only then."""
    (tmp_path / "pydantic").mkdir()
    (tmp_path / "pydantic" / "__init__.py").write_text("raise ImportError('failed to map segment')")
    code = "import sys, typer; from recollect.cli import entry, app; app.app = lambda **_: __import__('pydantic')"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.path.insert(0, {str(tmp_path)!r}); entry.main()"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "recollect: it cannot be loaded: failed to map segment.\n")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "audit"
    small_audit(out=folder, masks="half", methods="iterate")
    return folder


def imported_by(arguments: list[str]) -> tuple[int, set[str]]:
    """Run the command: its exit code, and the modules that it imported."""
    command = [sys.executable, "-X", "importtime", "-m", "recollect", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time"))
    return done.returncode, {line.rpartition("|")[2].strip() for line in lines}


LARGE = {"torch", "scipy", "pandas", "matplotlib", "skimage"}


@pytest.mark.parametrize("command", ["--help", "--version", "audit --help", "train --help"])
def test_help_waits_for_no_large_library(command: str) -> None:
    returned, imported = imported_by(command.split())
    assert returned == 0
    assert "recollect.cli.app" in imported
    assert not imported & {*LARGE, "PIL", "numpy"}


def test_sources_are_listed_without_torch() -> None:
    returned, imported = imported_by(["data", "list"])
    assert returned == 0
    assert "recollect.sources.cache" in imported
    assert not imported & {*LARGE, "PIL"}


MISTAKES = [
    "audit --nothing",
    "audit a:b",
    "audit nofile.pt --train photos",
    "audit ./nofolder --train photos",
    "audit a:b --train nosuch:x",
    "audit a:b --train photos --control folder:nowhere",
    "audit a:b --train photos --canaries c",
    "audit a:b --train photos --methods nonsense",
    "audit a:b --train photos --masks nonsense",
    "audit a:b --train photos --fill nonsense",
    "audit a:b --train photos --start nonsense",
    "audit a:b --train photos --gamma -1",
    "audit a:b --train photos --masks nowhere.png",
    "audit a:b --train photos --masks random:2",
    "audit a:b --train photos --device gpu",
    "audit a:b --train photos --input-range 1,0",
    "audit a:b --train photos --mean 0.5",
    "audit a:b --train photos --layout hwcn",
    "audit a:b --train photos --on nowhere",
    "audit a:b --canaries nowhere",
    "audit a:b --train photos --noise-std -1",
    "audit a:b --train photos --max-seconds 0",
    "audit a:b --train photos --threshold exact",
    "audit a:b --train photos --worker-cpus 2",
    "audit a:b --train photos --out file",
    "extract nofile.pt --train photos",
    "extract a:b --train nosuch:x",
    "extract a:b --train photos --input-range 1,0",
    "extract a:b --train photos --device gpu",
    "train nosuch:x --out runs",
    "train photos --out runs --device gpu",
    "train photos --out file",
    "train photos --out runs --network nonsense",
    "train photos --out runs --optimizer nonsense",
    "train photos --out runs --until 0",
    "train photos --out runs --batch 0",
    "train photos --out runs --max-steps -1",
    "train photos --out runs --max-seconds nan",
    "denoiser train nosuch:x --out runs",
    "denoiser train photos --out runs --schedule nonsense",
    "denoiser train photos --out runs --exclude nosuch:x",
    "denoiser train photos --out runs --device gpu",
    "canaries make --like nosuch:x",
    "canaries make --like photos --count 1",
    "canaries make --like photos --out file",
    "data fetch nothing",
    "data split nosuch:x",
    "demo --out file",
    "plan a:b --train photos --control photos --threshold nonsense",
    "paper list --scale nonsense",
    "paper run nonsense",
    "paper run accurate --device gpu",
    "paper run accurate --on nowhere",
    "paper run accurate --max-seconds 0",
    "paper figure nonsense",
    "verify nowhere",
    "report nowhere",
    "compare nowhere nowhere",
]
RUN_EACH = """
import sys
from typer.testing import CliRunner
from recollect.cli.app import app
for mistake in sys.stdin.read().splitlines():
    print(CliRunner().invoke(app, mistake.split()).exit_code, "torch" in sys.modules, mistake)
"""


def test_mistakes_are_refused_without_torch(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH], input="\n".join(MISTAKES), capture_output=True, text=True, check=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"2 False {mistake}" for mistake in MISTAKES]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("command", ["verify", "compare", "report"])
def test_saved_audits_are_read_without_torch(command: str, saved: Path) -> None:
    folders = [str(saved)] * (2 if command == "compare" else 1)
    returned, imported = imported_by([command, *folders])
    assert returned == 0
    assert "recollect.report.read" in imported
    assert not imported & LARGE


def test_threads_of_openmp_do_not_spin_unless_the_user_says_so() -> None:
    """OpenMP reads the variable when torch is loaded, which recollect does later."""
    code = "import sys, os, recollect; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    unset = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for environment, shown in ((unset, "passive False"), (unset | {"OMP_WAIT_POLICY": "active"}, "active False")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == shown
