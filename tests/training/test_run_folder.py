import contextlib
import signal
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import InputError
from recollect.checkpoints import load_checkpoint, save_checkpoint, write_tensors
from recollect.files.locks import UNFINISHED
from recollect.training import MILESTONES, Progress, Recipe, Training
from recollect.training.run_folder import RunFolder, find_milestones, milestone_path
from recollect.training.saved_state import FILE
from tests.full_disk import full_disk
from tests.training.small import Killed, loss_of, messages, small_images, small_network, train, vector
from tests.warm import SERVER

QUICK: dict[str, Any] = {"recipe": Recipe(rate=1e-2, solve_below=2e-2), "milestones": (3e-2, 1e-4, 1e-6)}


def writes_of(folder: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int | None, after: bool) -> int:
    """Train, and die at the given write, just before or just after the file is renamed."""
    count = 0
    replace = Path.replace

    def counted(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == stop_at and not after:
            raise Killed
        done = replace(self, target)
        if count == stop_at:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counted)
        with contextlib.suppress(Killed):
            train(folder, **QUICK)
    return count


@pytest.mark.parametrize("after", [False, True])
def test_death_at_any_write_loses_nothing(after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(**QUICK)
    total = writes_of(tmp_path / "whole", monkeypatch, None, after)
    assert total >= 7  # the start, four milestones, the state, the curve
    for stop_at in range(1, total + 1):
        folder = tmp_path / str(stop_at)
        writes_of(folder, monkeypatch, stop_at, after)
        there = {p.name for p in folder.glob("loss-*")}
        resumed = train(folder, **QUICK)
        assert resumed.reached
        assert there <= {m.path.name for m in resumed.milestones if m.path}
        assert [m.wanted for m in resumed.milestones] == [3e-2, 1e-4, 1e-6, 1e-8]
        assert resumed.loss <= 1e-8
        assert torch.equal(vector(whole.network), vector(resumed.network)), stop_at
        assert [point.loss for point in resumed.history] == [point.loss for point in whole.history]


def test_a_milestone_after_the_last_state_counts_even_if_a_limit_comes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes_of(tmp_path, monkeypatch, stop_at=3, after=True)  # the start, two milestones
    resumed = train(tmp_path, max_steps=1, **QUICK)
    assert not resumed.reached
    assert [m.wanted for m in resumed.milestones] == [3e-2, 1e-4]
    assert min(m.steps for m in resumed.milestones) > 1
    assert resumed.loss <= 1e-4
    assert len(messages(resumed, "after its last saved state")) == 2


def train_watched(folder: Path, watcher: Connection) -> None:
    """Train so slowly that every window is saved; say when one ends, and wait until told to continue."""
    torch.set_num_threads(1)

    def report(progress: Progress) -> None:
        with (folder / "reported.txt").open("a") as file:
            file.writelines(line + "\n" for line in progress.messages)
        watcher.send("window")
        watcher.recv()

    train(folder, seconds_per_pass=20, recipe=Recipe(rate=1e-3), report=report)


def reported(folder: Path) -> set[float]:
    """Milestones that a caller has been told of."""
    file = folder / "reported.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return {float(line.split("] reached ")[1].split(" ")[0]) for line in lines if "] reached " in line}


def test_really_killed_it_resumes_and_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    """SIGKILL while a state is written or the next window runs; on the CPU it ends with the same weights to the bit."""
    for count in (2, 9, 1):
        watcher, theirs = SERVER.Pipe()
        process = SERVER.Process(target=train_watched, args=(tmp_path, theirs))
        process.start()
        for _ in range(count):
            assert watcher.recv() == "window"
            watcher.send("continue")
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        for wanted in reported(tmp_path):
            saved = load_checkpoint(tmp_path / f"loss-{wanted:.0e}.safetensors")
            assert loss_of(saved.network, small_images()) <= wanted * (1 + 1e-6)
    told: list[str] = []
    done = train(tmp_path, recipe=Recipe(rate=1e-3), report=lambda progress: told.extend(progress.messages))
    with (tmp_path / "reported.txt").open("a") as file:
        file.writelines(f"{line}\n" for line in told)
    whole = train(recipe=Recipe(rate=1e-3))
    assert [m.wanted for m in done.milestones] == list(MILESTONES)
    assert set(MILESTONES) == reported(tmp_path)
    assert len(messages(done, "resumed")) >= 2
    assert torch.equal(vector(done.network), vector(whole.network))
    assert not list(tmp_path.glob(".*"))  # nothing half-written stays


def test_the_first_state_of_a_large_run_waits_until_writing_it_is_a_small_share(tmp_path: Path) -> None:
    now = 100.0
    small, large = (RunFolder(tmp_path, lambda: now, state_bytes) for state_bytes in (10**6, 16 * 10**9))
    due = []
    for now in (100.0, 114.0, 116.0, 739.0, 741.0):  # noqa: B007, read by the clock
        due.append((small.save_is_due, large.save_is_due))
    assert due == [(False, False), (False, False), (True, False), (True, False), (True, True)]


def test_a_state_is_saved_when_it_is_due(tmp_path: Path) -> None:
    changed: list[bytes] = []
    file = tmp_path / FILE
    options = {"until": 1e-30, "seconds_per_pass": 0.1, "max_steps": 500}
    train(tmp_path, **options, report=lambda _: changed.append(file.read_bytes()))
    saves = sum(before != after for before, after in pairwise(changed))
    assert saves == 3  # every 15 s of 500 steps, each of 0.1 s


def test_leftovers_of_a_killed_write_are_cleared_away(tmp_path: Path) -> None:
    for name in (FILE, "loss-1e-04.safetensors", "loss.csv", "log.txt", "best.safetensors"):
        (tmp_path / f".{name}.x1{UNFINISHED}").write_text("half")
    train(tmp_path, max_steps=50)
    assert not list(tmp_path.glob(".*"))


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = train(tmp_path)
    files = {p: p.read_bytes() for p in tmp_path.glob("loss-*.safetensors")}
    second = train(tmp_path, network=small_network(seed=42))
    assert second.reached
    assert second.loss == first.loss
    assert len(second.history) == len(first.history)
    assert [m.wanted for m in second.milestones] == list(MILESTONES)  # in the order they were reached
    assert {p: p.read_bytes() for p in files} == files


def test_a_run_whose_checkpoint_was_removed_is_not_resumed(tmp_path: Path) -> None:
    """Its weights of now would take the name of those that first reached the loss."""
    first = train(tmp_path, **QUICK)
    path = milestone_path(tmp_path, 1e-4)
    before, weights = path.read_bytes(), vector(load_checkpoint(path).network)
    path.unlink()
    with pytest.raises(InputError, match=r"loss-1e-04\.safetensors was removed.*training-state\.safetensors"):
        train(tmp_path, **QUICK)
    assert not path.exists()
    path.write_bytes(before)
    assert torch.equal(vector(train(tmp_path, **QUICK).network), vector(first.network))
    path.unlink()
    (tmp_path / FILE).unlink()
    train(tmp_path, **QUICK)
    assert torch.equal(vector(load_checkpoint(path).network), weights)


def test_a_lower_goal_goes_on_from_a_higher_one(tmp_path: Path) -> None:
    train(tmp_path, until=1e-3, milestones=(1e-2,))
    further = train(tmp_path, until=1e-5, milestones=(1e-2, 1e-3))
    assert further.reached
    assert [m.wanted for m in further.milestones] == [1e-2, 1e-3, 1e-5]


def test_a_folder_that_cannot_be_written_is_told_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    steps: list[object] = []
    with pytest.raises(InputError, match="cannot be written"):
        train(tmp_path / "file" / "run", report=steps.append)
    assert not steps


def test_a_network_that_cannot_be_saved_is_told_before_the_first_step(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1))
    steps: list[object] = []
    with pytest.raises(InputError, match="Only FullyConnected, UNet can be written as a checkpoint"):
        train(tmp_path, network=network, report=steps.append)
    assert not steps
    assert not train(network=network, max_steps=50).reached  # without a folder it may be trained


def test_a_disk_that_fills_up_keeps_what_there_was(tmp_path: Path) -> None:
    before = train(tmp_path, max_steps=300, milestones=(5e-2,))
    state = (tmp_path / FILE).read_bytes()
    with full_disk(), pytest.raises(InputError, match=r"cannot be written: File too large\."):
        train(tmp_path, milestones=(5e-2,))
    assert (tmp_path / FILE).read_bytes() == state
    after: Training = train(tmp_path, max_steps=300, milestones=(5e-2,))
    assert after.loss == before.loss


IDENTITY = {
    "network": {"class": "FullyConnected", **small_network().settings}, "recipe": {"rate": 1.0}, "data_hash": "abc",
}  # fmt: skip


def save(folder: Path, wanted: float, **changed: object) -> Path:
    path = milestone_path(folder, wanted)
    about = {"milestone": wanted, "loss": wanted / 2, "steps": 50, "seconds": 1.5, **IDENTITY, **changed}
    save_checkpoint(path, small_network(), about)
    return path


def test_milestones_on_disk_are_listed_highest_first(tmp_path: Path) -> None:
    paths = [save(tmp_path, wanted) for wanted in (1e-8, 1e-3, 1e-5, 2.5e-4)]
    found = find_milestones(tmp_path, IDENTITY)
    assert [m.wanted for m in found] == [1e-3, 2.5e-4, 1e-5, 1e-8]
    assert {m.path for m in found} == set(paths)
    assert (found[0].loss, found[0].steps, found[0].seconds) == (5e-4, 50, 1.5)
    assert find_milestones(tmp_path / "none", IDENTITY) == []


def test_milestones_of_another_run_are_refused(tmp_path: Path) -> None:
    save(tmp_path, 1e-4, data_hash="other")
    with pytest.raises(InputError, match=r"loss-1e-04.safetensors is of another network, recipe or training set"):
        find_milestones(tmp_path, IDENTITY)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "loss-1e-04.safetensors", {"w": torch.zeros(2)}, {})
    with pytest.raises(InputError, match="not one of recollect's checkpoints"):
        find_milestones(tmp_path, IDENTITY)
