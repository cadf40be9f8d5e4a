import json
from pathlib import Path

import pytest

from tests.cli.running import fill, here, mistake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_attractors_of_an_autoencoder(folder: Path) -> None:
    result = here("extract", "making_a_model:Planted", "--train", "train.npy", "--samples", "40", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "of the 6 training images appeared among 40 samples" in result.stdout
    assert json.loads((folder / "extract" / "extract.json").read_text())["distinct"]["accurate"] > 0
    assert (folder / "extract" / "copies.png").stat().st_size > 0


def test_samples_of_a_diffusion_model(folder: Path) -> None:
    train = ["denoiser", "train", "train.npy", "--out", "mine", "--max-steps", "2", "--widths", "16,16"]
    assert here(*train, "--batch", "2", "--device", "cpu").exit_code == 0
    command = ["extract", "mine", "--train", "train.npy", "--samples", "3", "--steps", "2", "--device", "cpu"]
    result = here(*command, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["evaluations"] == 9
    assert "knows no classes" in mistake(*command, "--label", "3")


def test_mistakes(folder: Path) -> None:
    assert "leave it out" in mistake("extract", "making_a_model:Planted", "--train", "train.npy", "--label", "3")
    (folder / "empty").mkdir()
    assert "is a folder, not a file" in mistake("extract", "empty", "--train", "train.npy")


def test_a_model_that_takes_few_images_runs_with_a_chunk(folder: Path) -> None:
    command = ["extract", "making_a_model:Narrow", "--train", "train.npy", "--samples", "40", "--device", "cpu"]
    result = here(*command)
    assert result.exit_code == 1
    assert "add --chunk 16" in result.stderr
    assert "resumes" not in result.stderr
    assert here(*command, "--chunk", "16").exit_code == 0
