import json
import signal
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.modules.module import register_module_forward_hook

from recollect import Images, InputError
from recollect.checkpoints import read_tensors
from recollect.diffusion import open_denoiser, train_denoiser
from recollect.diffusion.networks import DenoisingNetwork
from recollect.diffusion.train import STATE, Limits
from recollect.files.locks import lock_folder
from tests.diffusion.making import TINY, pictures, train_steps


def steps_in(folder: Path) -> int:
    return json.loads(read_tensors(folder / STATE)[1]["values"])["steps"]


def trained(images: Images, folder: Path, **settings: Any) -> list[str]:
    """Train on a CPU and return the lines that were reported."""
    lines: list[str] = []
    usual: dict[str, Any] = {"recipe": TINY, "device": "cpu", "samples": 0, "report": lines.append}
    train_denoiser(images, folder, **{**usual, **settings})
    return lines


def test_it_leaves_a_whole_denoiser_behind(trained: Path) -> None:
    names = {f.name for f in trained.iterdir()}
    assert names == {
        "denoiser.safetensors",
        "recollect-prior.json",
        "training-images.npy",
        STATE,
        "samples.png",
    }
    card = json.loads((trained / "recollect-prior.json").read_text())
    assert (card["trained_on"], card["images"], card["images_hash"]) == ("noise", 12, pictures().hash)
    assert card["training"]["steps"] == 3
    assert card["training"]["recipe"]["settings"]["widths"] == [16, 16]
    with Image.open(trained / "samples.png") as sheet:
        assert sheet.size == (2 * 8 * 9, 2 * 9)
        assert np.asarray(sheet).std() > 0


def test_the_weights_are_the_averaged_ones(trained: Path) -> None:
    tensors, _ = read_tensors(trained / STATE)
    opened = list(open_denoiser(trained).network.parameters())
    assert all(torch.equal(tensors[f"averaged.{number}"], weight) for number, weight in enumerate(opened))


def test_a_training_that_is_stopped_and_resumed_gives_the_same_weights(tmp_path: Path) -> None:
    calls = count()

    def interrupt(module: torch.nn.Module, *_: object) -> None:
        """Press Ctrl-C in the middle of the third step."""
        if isinstance(module, DenoisingNetwork) and next(calls) == 2:
            signal.raise_signal(signal.SIGINT)

    train_steps(pictures(), tmp_path / "through", 7)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with it ignored
    hook = register_module_forward_hook(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_steps(pictures(), tmp_path / "stopped", 7)
    finally:
        hook.remove()
        signal.signal(signal.SIGINT, before)
    lines = trained(pictures(), tmp_path / "stopped", max_steps=7)
    assert lines[0].startswith("resuming after step 3,")
    through, stopped = (open_denoiser(tmp_path / name).weights_hash for name in ("through", "stopped"))
    assert through == stopped


def test_a_long_training_is_saved_every_minute(tmp_path: Path) -> None:
    seconds, saved = count(0, 40), []

    def clock() -> float:
        saved.append((tmp_path / STATE).exists())
        return next(seconds)

    trained(pictures(), tmp_path, max_seconds=200, clock=clock)
    assert saved == [False, False, False, True, True, True]  # after the second step, when 80 s are over
    assert steps_in(tmp_path) == 5


def test_a_training_is_extended_and_another_one_is_refused(tmp_path: Path) -> None:
    trained(pictures(), tmp_path, max_steps=2)
    lines = trained(pictures(), tmp_path, max_steps=4)
    assert steps_in(tmp_path) == 4
    assert any("loss" in line for line in lines)
    assert any(line.startswith("This training is over already") for line in trained(pictures(), tmp_path, max_steps=4))
    assert steps_in(tmp_path) == 4
    for other in ({"images": pictures(seed=1)}, {"recipe": replace(TINY, seed=1)}):
        given = {"images": pictures(), "recipe": TINY} | other
        with pytest.raises(InputError, match="is of another training"):
            train_denoiser(given["images"], tmp_path, max_steps=5, recipe=given["recipe"], device="cpu")  # type: ignore[arg-type]
    content = bytearray((tmp_path / STATE).read_bytes())
    content[-1] ^= 1
    for damaged, why in [(content, "its checksum does not fit"), (content[:100], "cannot be read as safetensors")]:
        (tmp_path / STATE).write_bytes(damaged)
        with pytest.raises(InputError, match=why):
            trained(pictures(), tmp_path, max_steps=5)


def test_one_process_trains_in_a_folder_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".card.unfinished").touch()
    with lock_folder(tmp_path / "other"), pytest.raises(InputError, match="is in use by"):
        trained(pictures(), tmp_path / "other", max_steps=1)
    trained(pictures(), tmp_path, max_steps=1)
    assert not list(tmp_path.glob(".*"))


def test_at_least_one_step_is_made_in_no_time(tmp_path: Path) -> None:
    lines = trained(pictures(channels=1), tmp_path, max_seconds=1e-6, samples=2)
    assert steps_in(tmp_path) == 1
    assert any("Training ended after 1 step," in line for line in lines)
    assert open_denoiser(tmp_path).shape == (1, 8, 8)


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A training needs an end"):
        trained(pictures(), tmp_path)
    with pytest.raises(InputError, match="max_seconds is the time to train for"):
        trained(pictures(), tmp_path, max_seconds=0)
    with pytest.raises(InputError, match="max_steps is a number of steps"):
        trained(pictures(), tmp_path, max_steps=0)


def test_a_training_that_diverges_is_reported_and_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The training diverged"):
        trained(pictures(), tmp_path, max_steps=6, recipe=replace(TINY, rate=1e30))
    assert not (tmp_path / STATE).exists()


@pytest.mark.gpu
def test_it_trains_on_a_gpu(tmp_path: Path) -> None:
    denoiser = train_denoiser(pictures(), tmp_path, max_steps=20, recipe=TINY, samples=2)
    assert next(denoiser.parameters()).device.type == "cuda"


@pytest.mark.parametrize(
    ("max_seconds", "max_steps", "long"),
    [(599, None, False), (600, None, True), (None, 9999, False), (None, 10_000, True), (3600, 500, False)],
)
def test_long_trainings_are_those_in_which_compiling_pays(
    max_seconds: float | None, max_steps: int | None, long: bool
) -> None:
    assert Limits(max_seconds, max_steps).are_long == long
