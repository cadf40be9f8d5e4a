import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from recollect import Images
from recollect.checkpoints import load_checkpoint
from recollect.cli.train import decades_to, make_network
from recollect.networks import Network
from recollect.training import BEST
from tests.auditing.making import pictures
from tests.cli.running import fill, here, mistake, start_warm

SMALL = ["train", "train.npy", "--layers", "2", "--width", "64", "--until", "1e-3", "--device", "cpu", "--out", "runs"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    return tmp_path


def test_it_trains_says_what_was_reached_and_can_be_audited(folder: Path) -> None:
    result = here(*SMALL)
    assert result.exit_code == 0, result.output
    assert "6 images of 3x8x8 from array:train.npy" in result.stdout
    assert "Train loss" in result.stdout
    (path,) = (folder / "runs").glob("loss-*.safetensors")
    assert str(path.relative_to(folder)) in result.stdout
    network = load_checkpoint(path).network
    assert isinstance(network, Network)
    assert network.settings["width"] == 64
    audited = here("audit", str(path), "--train", "train.npy", "--masks", "half", "--methods", "iterate")
    assert audited.exit_code == 0, audited.output


def test_json(folder: Path) -> None:
    found = json.loads(here(*SMALL, "--json").stdout)
    assert found["reached"] is True
    assert found["loss"] <= 1e-3
    assert [Path(c["path"]).exists() for c in found["checkpoints"]] == [True]


def test_a_limit_keeps_what_was_reached_and_exits_with_one(folder: Path) -> None:
    result = here(*SMALL, "--until", "1e-12", "--max-steps", "5")
    assert result.exit_code == 1, result.output
    assert "short of" in result.stdout
    assert f"{Path('runs') / BEST}, the best so far" in result.stdout
    assert load_checkpoint(folder / "runs" / BEST).about["milestone"] is None
    assert "short of" in (folder / "runs" / "log.txt").read_text()


def test_the_network_is_the_one_asked_for() -> None:
    images = Images(pictures(2, 1, channels=1))
    unet = make_network("unet", images, activation="softplus", layers=None, width=None, last_width=None, seed=7)
    assert (type(unet).__name__, unet.settings["channels"], unet.settings["activation"]) == ("UNet", 1, "softplus")
    fc = make_network("fc", images, activation="prelu", layers=3, width=5, last_width=9, seed=7)
    assert [fc.settings[name] for name in ("layers", "width", "last_width", "seed")] == [3, 5, 9, 7]
    usual = make_network("fc", images, activation="lrelu", layers=None, width=None, last_width=None, seed=7)
    assert [usual.settings[name] for name in ("layers", "width")] == [10, 1024]


@pytest.mark.parametrize(
    ("until", "decades"), [(1e-8, [4, 5, 6, 7, 8]), (5e-6, [4, 5]), (1e-2, [4]), (1e-10, [4, 5, 6, 7, 8, 9, 10])]
)
def test_there_is_a_checkpoint_at_every_decade(until: float, decades: list[int]) -> None:
    assert decades_to(until) == [float(f"1e-{k}") for k in decades]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--until", "-1"], "--until is a positive number"),
        (["--until", "nan"], "--until is a positive number"),
        (["--rate", "0"], "--rate is a positive number"),
        (["--batch", "0"], "A batch has at least one image"),
        (["--optimizer", "sgd"], "no optimizer 'sgd'; choose from adam, muon"),
        (["--device", "nowhere"], "The device nowhere cannot be used"),
        (["--max-seconds", "-1"], "negative"),
        (["--max-steps", "-1"], "negative"),
        (["--network", "unet"], "The network unet has no setting 'layers'"),
        (["--out", "train.npy"], "train.npy is a file"),
        (["--out", "train.npy/below"], "cannot be written"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_mistake_is_one_sentence(folder: Path, changes: list[str], words: str) -> None:
    result = here(*SMALL, *changes)
    lines = result.stderr.strip().splitlines()
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(lines) == 1, result.stderr
    assert words in lines[0]


def test_a_source_that_is_none(folder: Path) -> None:
    assert "There is no source 'fotos'" in mistake("train", "fotos", "--out", "runs")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_where_there_is_none(folder: Path) -> None:
    assert "The device cuda cannot be used" in mistake("train", "train.npy", "--device", "cuda", "--out", "runs")


def test_an_unknown_network_lists_those_there_are(folder: Path) -> None:
    assert "There is no network 'vit'; choose from fc, unet" in mistake(*SMALL, "--network", "vit")


@pytest.mark.parametrize("changes", [["--activation", "gelu"], ["--width", "0"], ["--layers", "1"]])
def test_usage_errors_are_typers_own(folder: Path, changes: list[str]) -> None:
    result = here(*SMALL, *changes)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_a_run_of_another_network_in_the_folder_is_refused(folder: Path) -> None:
    assert here(*SMALL).exit_code == 0
    assert here(*SMALL, "--width", "32").exit_code == 2
    np.save(folder / "train.npy", pictures(6, 8).numpy())
    result = here(*SMALL)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    fill(tmp_path)
    process = start_warm(tmp_path, *SMALL, "--until", "1e-30")  # which is never reached: only the signal ends it
    while not list(tmp_path.glob("runs/loss-1e-04*")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    code, _, err = process.end()
    assert code == 128 + number, err
    assert "recollect: interrupted" in err
    assert "once more to stop at once" in err
    log = (tmp_path / "runs" / "log.txt").read_text()
    assert "interrupted after" in log.splitlines()[-1]
    assert int(log.splitlines()[-1].split("step ")[1].split("]")[0]) > 0
    monkeypatch.chdir(tmp_path)
    resumed = here(*SMALL, "--until", "1e-4", "--json")
    assert resumed.exit_code == 0, resumed.output
    found = json.loads(resumed.stdout)
    assert found["reached"] is True
    assert any("resumed" in line for line in found["log"])


def test_skip_connections_and_a_solved_last_layer_are_options(folder: Path) -> None:
    unet = ["train", "train.npy", "--network", "unet", "--skip", "--device", "cpu", "--max-steps", "1", "--out", "u"]
    assert here(*unet).exit_code == 1
    assert load_checkpoint(folder / "u" / BEST).about["network"]["skip"] is True
    assert "The network fc has no setting 'skip'" in mistake(*SMALL, "--skip")
    solved = here(*SMALL, "--until", "1e-7", "--solve-below", "1e-2", "--json")
    assert solved.exit_code == 0, solved.output
    last = load_checkpoint(json.loads(solved.stdout)["checkpoints"][-1]["path"]).about
    assert last["finish"].startswith("last layer solved by least squares")
    assert last["recipe"]["solve_below"] == 1e-2
