import json
from pathlib import Path

import numpy as np
import pytest

from recollect.canaries import open_canaries
from tests.cli.running import fill, here, mistake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_make_train_audit(folder: Path) -> None:
    np.save("like.npy", np.random.default_rng(0).random((9, 3, 8, 8), np.float32))
    made = here("canaries", "make", "--count", "20", "--repeats", "2", "--like", "like.npy", "--out", "mine")
    assert made.exit_code == 0, made.output
    canaries = open_canaries("mine")
    told = (
        f"{len(canaries.train)} of 20 canaries go into the training set: add all {len(canaries.training_images)} files"
    )
    assert told in made.stdout
    assert canaries.commitment in made.stdout

    np.save("train.npy", canaries.training_images.pixels.unique(dim=0).numpy())  # what the model memorizes
    audit = ["audit", "making_a_model:Planted", "--canaries", "mine", "--masks", "half", "--methods", "iterate"]
    result = here(*audit, "--device", "cpu")
    assert result.exit_code == 0, result.output
    counts = f"of {len(canaries.train)} in training and 0 of {len(canaries.control)} left out"
    assert counts in " ".join(result.stdout.split())
    assert json.loads(Path("audit/audit.json").read_text())["canaries"]["epsilon"] > 0


def test_mistakes(folder: Path) -> None:
    assert "--repeats takes whole numbers" in mistake("canaries", "make", "--like", "train.npy", "--repeats", "1,x")
    assert "at least 8 images" in mistake("canaries", "make", "--like", "train.npy")
    assert "needs training images" in mistake("audit", "making_a_model:Planted")
    assert "holds no canaries" in mistake("audit", "making_a_model:Planted", "--canaries", ".")
    both = ["--canaries", ".", "--train", "train.npy"]
    assert "leave train and control out" in mistake("audit", "making_a_model:Planted", *both)
