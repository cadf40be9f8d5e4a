import hashlib
import json
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.running import fill, here, mistake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "making_a_model", raising=False)
    return tmp_path


PLAN = ["plan", "making_a_model:Planted", "--train", "train.npy", "--control", "control.npy"]


def test_a_plan_is_written_followed_and_recorded(folder: Path) -> None:
    assert here(*PLAN, "--fail-above", "50%").stdout == "The plan: audit.toml\n"
    written = (folder / "audit.toml").read_text()
    assert tomllib.loads(written) == {
        "model": "making_a_model:Planted", "train": "train.npy", "control": "control.npy", "fail-above": "50%",
        "threshold": "approximate",
    }  # fmt: skip
    for line in ('# masks = "all"', '# out = "audit"', "# gamma = ..."):
        assert line in written.splitlines()
    (folder / "audit.toml").write_text(f'{written}masks = "half"\nmethods = "iterate"\ngamma = 0.5\n')
    result = here("audit", "--plan", "audit.toml", "--masks", "block", "--fill", "noise", "--out", "audit")
    assert result.exit_code == 3, result.output
    found = json.loads((folder / "audit" / "audit.json").read_text())
    assert found["plan"] == {
        "file": "audit.toml",
        "sha256": hashlib.sha256((folder / "audit.toml").read_bytes()).hexdigest(),
        "endpoint": "The share of training images that any attack recovers under any mask (MSE below 5e-04), at most "
        "50.00%.",
        "overridden": ["masks", "fill"],
    }
    assert {row["mask"] for row in found["summary"]} == {"block+noise"}
    assert {row["method"] for row in found["summary"]} == {"iterate"}


def test_a_plan_is_written_once(folder: Path) -> None:
    here(*PLAN)
    assert "audit.toml is there already" in mistake(*PLAN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('fail-above = "1%"', "does not set threshold"),
        ('threshold = "exact"', "does not set fail-above"),
        ('threshold = "exact"\nfail-above = "1%"\nmask = "half"', "sets 'mask', which is no setting"),
        ('threshold = "exact"\nfail-above = "1%"\ncontrol = "making_a_model:dataset"', "names code for control"),
        ('threshold = "exact"\nfail-above = "1%"\ncontrol = "code:making_a_model:dataset"', "names code for control"),
        ("threshold = ", "cannot be read as TOML"),
    ],
)
def test_a_plan_without_an_endpoint_or_with_mistakes_is_refused(folder: Path, text: str, words: str) -> None:
    (folder / "mine.toml").write_text(text)
    assert words in mistake("audit", "--plan", "mine.toml", "making_a_model:Planted", "--train", "train.npy")
    assert "There is no plan nowhere.toml" in mistake("audit", "--plan", "nowhere.toml")
