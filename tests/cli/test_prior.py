from pathlib import Path

import pytest

from tests.cli.running import QUICK, fill, here, mistake

TRAIN = ["prior", "train", "control.npy", "--out", "prior", "--max-seconds", "0.3", "--widths", "16,16", "--batch", "4"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_prior_is_trained_and_used(folder: Path) -> None:
    result = here(*TRAIN, "--device", "cpu", "--about", "five pictures", "--exclude", "train.npy")
    assert result.exit_code == 0, result.output
    assert "0 of 5 images left out: they are in train.npy" in result.stdout
    assert "loss" in result.stdout
    assert "--prior prior" in result.stdout
    assert (folder / "prior" / "samples.png").exists()
    audited = here(*QUICK, "--methods", "blind,ddnm", "--prior", "prior")
    assert audited.exit_code == 0, audited.output
    assert "Attribution: of 6 training images, blind recovers 6 almost exactly" in audited.stdout
    assert "trained on five pictures, and has seen 0 of the 6 train images" in audited.stdout
    assert "5 of the 5 control images" in audited.stdout


def test_mistakes(folder: Path) -> None:
    assert "whole numbers with commas" in mistake(*TRAIN, "--widths", "a,b")
    assert "There is no schedule 'square'" in mistake(*TRAIN, "--schedule", "square")
    assert "cannot be used" in mistake(*TRAIN, "--device", "tpu")
    (folder / "prior").write_text("")
    assert "is a file" in mistake(*TRAIN)
