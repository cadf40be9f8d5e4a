import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import Images, InputError
from recollect.diffusion import open_prior, train_prior
from recollect.diffusion import train as training
from recollect.diffusion.learning import Learner
from tests.diffusion.making import TINY, pictures


def test_it_leaves_a_whole_prior_behind(trained: Path) -> None:
    names = {f.name for f in trained.iterdir()}
    assert names >= {"config.json", "diffusion_pytorch_model.safetensors", "scheduler_config.json", "samples.png"}
    assert not [n for n in names if n.startswith(".")]
    assert len({f.stat().st_mode for f in trained.iterdir() if f.suffix in (".json", ".safetensors")}) == 1
    card = json.loads((trained / "recollect-prior.json").read_text())
    assert (card["trained_on"], card["images"], card["images_hash"]) == ("noise", 12, pictures().hash)
    assert card["training"]["steps"] > 0
    assert card["training"]["recipe"]["widths"] == [16, 16]
    with Image.open(trained / "samples.png") as sheet:
        assert sheet.size == (2 * 8 * 9, 2 * 9)
        assert np.asarray(sheet).std() > 0


def test_the_weights_are_the_averaged_ones_in_half_precision(trained: Path) -> None:
    averaged = torch.load(trained / "training.pt", weights_only=True)["averaged"]
    opened = open_prior(trained).network.state_dict()
    assert all(torch.equal(averaged[k].half().float(), opened[k]) for k in averaged)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    said: list[str] = []
    train_prior(pictures(), tmp_path, max_seconds=0.3, recipe=TINY, device="cpu", samples=0)
    steps = torch.load(tmp_path / "training.pt", weights_only=True)["steps"]
    train_prior(pictures(), tmp_path, max_seconds=0.9, recipe=TINY, device="cpu", samples=0, report=said.append)
    assert said[0].startswith(f"going on after step {steps},")
    assert torch.load(tmp_path / "training.pt", weights_only=True)["steps"] > steps
    assert "loss" in said[-2]
    train_prior(pictures(), tmp_path, max_seconds=0.2, recipe=TINY, device="cpu", samples=0, report=said.append)
    assert any(line.startswith("It has had its 0.2 s already") for line in said)
    for other in ({"images": pictures(seed=1)}, {"recipe": replace(TINY, seed=1)}):
        given = {"images": pictures(), "recipe": TINY} | other
        with pytest.raises(InputError, match="is of another training"):
            train_prior(given["images"], tmp_path, max_seconds=1, recipe=given["recipe"], device="cpu")  # type: ignore[arg-type]
    (tmp_path / "training.pt").write_bytes(b"half a file")
    with pytest.raises(InputError, match="cannot be read as a training to go on with"):
        train_prior(pictures(), tmp_path, max_seconds=1, recipe=TINY, device="cpu")


def test_grey_images_make_a_grey_prior(tmp_path: Path) -> None:
    prior = train_prior(pictures(channels=1), tmp_path, max_seconds=0.2, recipe=TINY, device="cpu", samples=2)
    assert prior.shape == (1, 8, 8)


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="square images; these are 6x8"):
        train_prior(Images(torch.rand(2, 3, 8, 6)), tmp_path, max_seconds=1, recipe=TINY)
    with pytest.raises(InputError, match="max_seconds is the time to train for"):
        train_prior(pictures(), tmp_path, max_seconds=0, recipe=TINY)


def test_a_training_that_is_ended_by_the_user_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    class Impatient(Learner):
        def step(self, part_done: float) -> torch.Tensor:
            if self.steps == 3:
                raise KeyboardInterrupt
            return super().step(part_done)

    monkeypatch.setattr(training, "Learner", Impatient)
    with pytest.raises(KeyboardInterrupt):
        train_prior(pictures(), tmp_path, max_seconds=60, recipe=TINY, device="cpu")
    monkeypatch.undo()
    train_prior(
        pictures(), tmp_path, max_seconds=0.01, recipe=TINY, device="cpu", samples=0,
        report=lambda line: steps.append(int(line.split()[4].strip(","))) if "going on" in line else None,
    )  # fmt: skip
    assert steps == [3]


def test_a_training_that_diverges_is_told_and_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Diverging(Learner):
        def step(self, part_done: float) -> torch.Tensor:
            return super().step(part_done) * torch.nan

    monkeypatch.setattr(training, "Learner", Diverging)
    with pytest.raises(InputError, match="The training diverged"):
        train_prior(pictures(), tmp_path, max_seconds=0.05, recipe=TINY, device="cpu")
    assert not (tmp_path / "training.pt").exists()


def test_few_steps_and_the_drawing_of_samples_are_told(tmp_path: Path) -> None:
    said: list[str] = []
    train_prior(pictures(), tmp_path, max_seconds=1e-6, recipe=TINY, device="cpu", samples=40, report=said.append)
    assert "Only 1 steps were made, and a prior knows little" in said[1]
    assert said[2] == "drawing 16 samples"
    assert torch.load(tmp_path / "training.pt", weights_only=True)["steps"] == 1


@pytest.mark.gpu
def test_it_trains_on_a_gpu_with_fused_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "WORTH_COMPILING", 0)
    said: list[str] = []
    prior = train_prior(pictures(), tmp_path, max_seconds=60, recipe=TINY, samples=2, report=said.append)
    assert next(prior.parameters()).device.type == "cuda"
    assert said[0].startswith("compiled in")
