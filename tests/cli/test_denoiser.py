import json
from pathlib import Path

import pytest

from tests.cli.running import QUICK, fill, here, mistake

TRAIN = ["denoiser", "train", "control.npy", "--out", "mine", "--max-steps", "3", "--widths", "16,16", "--batch", "4"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_denoiser_is_trained_and_used_as_a_prior(folder: Path) -> None:
    result = here(*TRAIN, "--device", "cpu", "--about", "five pictures", "--exclude", "train.npy")
    assert result.exit_code == 0, result.output
    assert "0 of 5 images left out: they are in train.npy" in result.stdout
    assert "loss" in result.stdout
    assert "--prior mine" in result.stdout
    assert (folder / "mine" / "samples.png").exists()
    audited = here(*QUICK, "--masks", "half", "--methods", "blind,ddnm", "--prior", "mine", "--verbose")
    assert audited.exit_code == 0, audited.output
    prior = json.loads((folder / "audit" / "audit.json").read_text())["prior"]
    assert (prior["trained_on"], prior["training_images"]) == ("five pictures", 5)
    assert prior["known_to_it"]["train"]["exact"] == 0
    assert prior["known_to_it"]["control"]["exact"] == 5


def test_a_denoiser_is_trained_and_audited(folder: Path) -> None:
    assert here(*TRAIN, "--device", "cpu").exit_code == 0
    audit = ["audit", "mine", "--train", "control.npy", "--masks", "half", "--methods", "iterate", "--device", "cpu"]
    result = here(*audit, "--noise-level", "0.3", "--out", "audited")
    assert result.exit_code == 0, result.output
    facts = json.loads((folder / "audited" / "audit.json").read_text())
    assert facts["model"]["noise_level"] == 0.3
    assert len(facts["noise_levels"]) == 5
    assert "--noise-level takes a number, annealed or auto" in mistake(*audit, "--noise-level", "high")
    assert "noise_level is for diffusion models" in mistake(*QUICK, "--noise-level", "0.3")


def test_mistakes(folder: Path) -> None:
    assert "whole numbers with commas" in mistake(*TRAIN, "--widths", "a,b")
    assert "There is no schedule 'square'" in mistake(*TRAIN, "--schedule", "square")
    assert "There is no denoising network 'tree'" in mistake(*TRAIN, "--network", "tree")
    assert "cannot be used" in mistake(*TRAIN, "--device", "tpu")
    (folder / "mine").write_text("")
    assert "is a file" in mistake(*TRAIN)
