import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import InputError, UNet
from recollect import records as records_module
from recollect.checkpoints import load_checkpoint, read_tensors, write_tensors
from recollect.training import MILESTONES, Recipe, Training
from recollect.training import run_folder as keeping
from recollect.training.state import FILE, _differences
from tests.training.small import RECIPE, loss_of, small_images, small_network, train, vector

RECIPES = {
    "adam": RECIPE,
    "muon": Recipe(optimizer="muon", rate=0.02),
    "batch": Recipe(batch=6, rate=2e-3),
    "falls": Recipe(
        "muon", rate=0.01, decay=0.2, fall=5000, straight=True, fall_power=1.5, newton_schulz=7, finish_from=None
    ),
    "cuts": Recipe(rate=0.5),  # diverges, collapses, is cut and started again
}
QUICK: dict[str, Any] = {"recipe": Recipe(rate=5e-3, finish_from=2e-2), "milestones": (3e-2, 1e-4, 1e-6)}


class Killed(BaseException):
    """Stands for SIGKILL inside one process: nothing of recollect's catches it."""


def kill_at(steps: int) -> Callable[[Any], None]:
    def report(progress: Any) -> None:
        if progress.point.steps >= steps:
            raise Killed

    return report


@pytest.fixture
def saving_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state after every window."""
    monkeypatch.setattr(keeping, "_pause", lambda _: -1e9)


@pytest.mark.usefixtures("saving_always")
@pytest.mark.parametrize("name", RECIPES)
def test_a_run_stopped_anywhere_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    whole = train(recipe=recipe, max_steps=700)
    for steps in (150, 600):
        with pytest.raises(Killed):
            train(tmp_path, recipe=recipe, max_steps=700, report=kill_at(steps))
    resumed = train(tmp_path, recipe=recipe, max_steps=700)
    assert sum("resumed" in line for line in resumed.log) == 2
    assert torch.equal(vector(whole.network), vector(resumed.network))
    assert (whole.loss, whole.reached) == (resumed.loss, resumed.reached)
    assert [m.wanted for m in whole.milestones] == [m.wanted for m in resumed.milestones]
    assert [p.loss for p in whole.history[:20]] == [p.loss for p in resumed.history[:20]]


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "falls"])  # a rate falls in time for a limit
def test_a_run_that_hit_its_limit_goes_on_as_if_it_had_not(name: str, tmp_path: Path) -> None:
    """The result holds the best weights, but the state the latest ones."""
    whole = train(recipe=RECIPES[name], max_steps=900)
    first = train(tmp_path, recipe=RECIPES[name], max_steps=450)
    assert not first.reached
    second = train(tmp_path, recipe=RECIPES[name], max_steps=900)
    assert torch.equal(vector(whole.network), vector(second.network))
    assert [p.averaged for p in whole.history] == [p.averaged for p in second.history]


def writes_of(folder: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int | None, after: bool) -> int:
    """Train, and die at the given write, just before or just after the file takes its place."""
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
    monkeypatch.setattr(keeping, "draw_curve", lambda *_: None)  # it takes longer than all the rest
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


SCRIPT = """
    import sys
    from pathlib import Path
    import torch
    torch.set_num_threads(1)
    from recollect.training import run_folder as keeping
    from tests.training.small import train
    from recollect.training import Recipe

    keeping.SAVE_SECONDS = 0.05
    folder = Path(sys.argv[1])

    def report(progress):
        with (folder / "reported.txt").open("a") as file:
            file.writelines(line + "\\n" for line in progress.said)

    train(folder, recipe=Recipe(rate=2e-4), report=report)
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder)], cwd=root, env=environment)


def reported(folder: Path) -> set[float]:
    """Milestones that a caller has been told of."""
    told = folder / "reported.txt"
    lines = told.read_text().splitlines() if told.exists() else []
    return {float(line.split("] reached ")[1].split(" ")[0]) for line in lines if "] reached " in line}


def test_really_killed_it_resumes_and_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    """SIGKILL at random moments, most of them inside a run; on the CPU it ends with the same weights to the bit."""
    draw, resumed = random.Random(5), 0
    for _ in range(3):
        process = start(tmp_path)
        while not (tmp_path / FILE).exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(1.2, 2.2))  # starting takes about a second
        process.send_signal(signal.SIGKILL)
        process.wait()
        for wanted in reported(tmp_path):
            saved = load_checkpoint(tmp_path / f"loss-{wanted:.0e}.safetensors")
            assert loss_of(saved.network, small_images()) <= wanted * (1 + 1e-6)
        resumed += process.returncode == -signal.SIGKILL
    assert resumed >= 1
    assert start(tmp_path).wait() == 0
    done = train(tmp_path, recipe=Recipe(rate=2e-4))  # finds all done
    whole = train(recipe=Recipe(rate=2e-4))
    assert [m.wanted for m in done.milestones] == list(MILESTONES)
    assert set(MILESTONES) >= reported(tmp_path)
    assert sum("resumed" in line for line in done.log) >= 2
    assert torch.equal(vector(done.network), vector(whole.network))
    assert not list(tmp_path.glob(".*"))  # nothing half-written stays


def test_the_first_state_of_a_large_run_waits_until_writing_it_is_a_small_share(tmp_path: Path) -> None:
    now = time.monotonic()
    small, large = keeping.Keeper(tmp_path, 10**6), keeping.Keeper(tmp_path, 16 * 10**9)
    assert small._next_save - now == pytest.approx(keeping.SAVE_SECONDS, abs=1)
    assert large._next_save - now == pytest.approx(640, abs=1)


def test_leftovers_of_a_killed_write_are_cleared_away(tmp_path: Path) -> None:
    for name in (f".{FILE}.x1", ".loss-1e-04.safetensors.abc", ".loss.csv.q", ".log.txt.q", ".best.safetensors.q"):
        (tmp_path / name).write_text("half")
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


def test_a_lower_goal_goes_on_from_a_higher_one(tmp_path: Path) -> None:
    train(tmp_path, until=1e-3, milestones=(1e-2,))
    further = train(tmp_path, until=1e-5, milestones=(1e-2, 1e-3))
    assert further.reached
    assert [m.wanted for m in further.milestones] == [1e-2, 1e-3, 1e-5]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"recipe": Recipe(rate=1e-2)}, r"with another recipe \(rate 0.002, now 0.01\)"),
        ({"images": small_images(seed=1)}, r"on other images;"),
        ({"network": small_network(seed=7)}, r"of another network \(seed 42, now 7\)"),
        ({"network": small_network(activation="prelu")}, r"of another network \(activation lrelu, now prelu\)"),
        ({"network": UNet(channels=1, widths=(4, 8))}, r"of another network \(class FullyConnected, now UNet"),
    ],
)
@pytest.mark.parametrize("steps", [0, 100])
def test_other_settings_are_refused(other: dict[str, Any], words: str, steps: int, tmp_path: Path) -> None:
    train(tmp_path, max_steps=steps)
    with pytest.raises(InputError, match=f"holds a training run {words}.*choose another folder"):
        train(tmp_path, **other)


def test_another_device_is_refused(tmp_path: Path) -> None:
    train(tmp_path, max_steps=50)
    tensors, metadata = read_tensors(tmp_path / FILE)
    facts = {**json.loads(metadata["facts"]), "device": "cuda"}
    write_tensors(tmp_path / FILE, tensors, {**metadata, "facts": json.dumps(facts)})
    with pytest.raises(InputError, match=r"another device \(cuda, now cpu\)"):
        train(tmp_path)


def test_damaged_states_are_told(tmp_path: Path) -> None:
    train(tmp_path, max_steps=50)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-100])
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        train(tmp_path)
    write_tensors(tmp_path / FILE, {"w": torch.zeros(1)}, {"format": "other"})
    with pytest.raises(InputError, match="not a training state that this version of recollect can continue"):
        train(tmp_path)
    (tmp_path / FILE).write_bytes(whole)
    tensors, metadata = read_tensors(tmp_path / FILE)
    write_tensors(tmp_path / FILE, {k: t for k, t in tensors.items() if k != "order"}, metadata)
    with pytest.raises(InputError, match="is damaged: it lacks 'order'"):
        train(tmp_path)


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


def test_a_disk_that_fills_up_keeps_what_there_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = train(tmp_path, max_steps=300, milestones=(5e-2,))
    state = (tmp_path / FILE).read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records_module.os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot be written: No space left on device\."):
        train(tmp_path, milestones=(5e-2,))
    monkeypatch.undo()
    assert (tmp_path / FILE).read_bytes() == state
    after: Training = train(tmp_path, max_steps=300, milestones=(5e-2,))
    assert after.loss == before.loss


def test_a_setting_that_an_earlier_version_did_not_have_is_named() -> None:
    assert _differences({"rate": 1.0}, {"rate": 1.0, "fall": None}) == " (fall not set, now None)"
