from pathlib import Path

import pytest
import torch

from recollect import InputError
from recollect.checkpoints import save_checkpoint, write_tensors
from recollect.training.outcome import milestone_path, milestones_in, spell
from tests.training.small import small_network

IDENTITY = {
    "network": {"class": "FullyConnected", **small_network().settings}, "recipe": {"rate": 1.0}, "data_hash": "abc",
}  # fmt: skip


def save(folder: Path, wanted: float, **changed: object) -> Path:
    path = milestone_path(folder, wanted)
    about = {"milestone": wanted, "loss": wanted / 2, "steps": 50, "seconds": 1.5, **IDENTITY, **changed}
    save_checkpoint(path, small_network(), about)
    return path


def test_losses_are_spelled_short_and_never_alike() -> None:
    assert [spell(loss) for loss in (1e-4, 1e-8, 0.5, 1.5e-5, 1.4e-4)] == [
        "1e-04",
        "1e-08",
        "5e-01",
        "1.5e-05",
        "0.00014",
    ]
    assert len({spell(loss) for loss in (1.4e-4, 1e-4, 1.04e-4)}) == 3


def test_milestones_on_disk_come_back_highest_first(tmp_path: Path) -> None:
    paths = [save(tmp_path, wanted) for wanted in (1e-8, 1e-3, 1e-5, 2.5e-4)]
    found = milestones_in(tmp_path, IDENTITY)
    assert [m.wanted for m in found] == [1e-3, 2.5e-4, 1e-5, 1e-8]
    assert {m.path for m in found} == set(paths)
    assert (found[0].loss, found[0].steps, found[0].seconds) == (5e-4, 50, 1.5)
    assert milestones_in(tmp_path / "none", IDENTITY) == []


def test_milestones_of_another_run_are_refused(tmp_path: Path) -> None:
    save(tmp_path, 1e-4, data_hash="other")
    with pytest.raises(InputError, match=r"loss-1e-04.safetensors is of another network, recipe or training set"):
        milestones_in(tmp_path, IDENTITY)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "loss-1e-04.safetensors", {"w": torch.zeros(2)}, {})
    with pytest.raises(InputError, match="not one of recollect's checkpoints"):
        milestones_in(tmp_path, IDENTITY)
