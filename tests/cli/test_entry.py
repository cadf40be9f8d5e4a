"""Output that cannot be written ends in one sentence, and a reader that leaves ends it quietly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
