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


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["data", "list"], 0), (["audit", "--nothing"], 2), (["data", "fetch", "nothing"], 2)],
)
def test_commands_that_need_no_torch_do_not_wait_for_it(arguments: list[str], code: int) -> None:
    returned, imported = imported_by(arguments)
    assert returned == code
    assert "recollect.cli.app" in imported
    assert not imported & {"torch", "scipy", "pandas", "matplotlib", "skimage", "PIL"}


@pytest.mark.parametrize("command", ["verify", "compare", "report"])
def test_saved_audits_are_read_without_torch(command: str, saved: Path) -> None:
    folders = [str(saved)] * (2 if command == "compare" else 1)
    returned, imported = imported_by([command, *folders])
    assert returned == 0
    assert "recollect.report.read" in imported
    assert not imported & {"torch", "scipy", "pandas", "matplotlib", "skimage"}
