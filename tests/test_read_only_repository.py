"""No test can change the repository."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.records import write_json
from tests.read_only_repository import ROOT

INSIDE = ROOT / "results" / "paper" / "small"


@pytest.mark.parametrize(
    "change",
    [
        lambda _: (INSIDE / "new.json").write_text("{}"),
        lambda _: write_json(INSIDE / "new.json", {}),
        lambda _: os.open(INSIDE / "new.json", os.O_CREAT | os.O_WRONLY),
        lambda _: (INSIDE / "new").mkdir(),
        lambda _: shutil.rmtree(INSIDE / "figures"),
        lambda _: (ROOT / "README.md").unlink(),
        lambda elsewhere: elsewhere.rename(INSIDE / "new.json"),
        lambda elsewhere: (INSIDE / "new.json").symlink_to(elsewhere),
        lambda _: subprocess.run([sys.executable, "-c", ""], cwd=ROOT, check=True),
    ],
)
def test_a_change_is_refused(change: Callable[[Path], object], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    with pytest.raises(AssertionError, match="a test changes the repository"):
        change(elsewhere)


def test_reading_and_changes_elsewhere_are_allowed(tmp_path: Path) -> None:
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "README.md").rename(tmp_path / "renamed")
    subprocess.run([sys.executable, "-c", "import tests.read_only_repository"], check=True)


def test_relative_folders_are_outside(tmp_path: Path) -> None:
    assert not Path.cwd().is_relative_to(ROOT)
