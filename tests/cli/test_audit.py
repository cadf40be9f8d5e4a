import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import Result

from recollect import FullyConnected
from recollect.cli.audit import read_number, read_rate_limit
from recollect.degradation import PAPER_MASKS
from recollect.errors import InputError
from recollect.methods import METHODS
from recollect.records import BYTES_OF_IMAGE
from recollect.sources import SOURCES
from tests.auditing.making import pictures
from tests.cli.running import AUDIT, QUICK, TWO_ATTACKS, fill, here, mistake, run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "making_a_model", raising=False)
    return tmp_path


# --- what it does


def test_it_prints_the_headline_and_writes_the_report(folder: Path) -> None:
    result = here(*QUICK)
    assert result.exit_code == 0, result.output
    assert "\nAttacks recover 6 of 6 training images from this model (95% interval" in result.stdout
    assert "61-100%). Of 5 images it never saw: 0." in " ".join(result.stdout.split())
    assert "The report: audit/report.html" in result.stdout
    assert result.stderr.startswith(
        "4 attacks and 1 reference under 2 masks, on 6 training and 5 unseen images: up to "
    )
    assert "\n100% done: checking numerical stability\n" in result.stderr
    found = json.loads((folder / "audit" / "audit.json").read_text())
    assert found["title"] == "making_a_model:Planted"
    assert found["train"]["name"] == "array:train.npy"
    assert {"audit.json", "images.csv", "report.html", "cells"} <= {p.name for p in (folder / "audit").iterdir()}


def test_a_split_file_and_code_name_the_images_too(folder: Path) -> None:
    assert here("data", "split", "train.npy", "control.npy", "--out", "split.json").exit_code == 0
    few = ["--masks", "half", "--methods", "iterate", "--gamma", "0.5", "--start", "half_kept"]
    result = here("audit", "making_a_model:Planted", "--train", "split.json", *few)
    assert result.exit_code == 0, result.output
    found = json.loads((folder / "audit" / "audit.json").read_text())
    assert (found["train"]["images"], found["control"]["images"]) == (6, 5)
    result = here("audit", "making_a_model:Planted", "--train", "making_a_model:dataset", *few, "--out", "b")
    assert result.exit_code == 0, result.output
    assert json.loads((folder / "b" / "audit.json").read_text())["train"]["hash"] == found["train"]["hash"]
    result = here("data", "split", "making_a_model:dataset", "control.npy", "--out", "code.json")
    assert "It names code, which recollect takes from no file" in result.stdout
    assert "which no file may name" in mistake("audit", "making_a_model:Planted", "--train", "code.json")


def test_json_is_all_that_stdout_holds(folder: Path) -> None:
    result = here(*QUICK, "--json", "--masks", "half", "--methods", "iterate")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((folder / "audit" / "audit.json").read_text())


def test_without_pictures_no_image_is_written(folder: Path) -> None:
    few = [*QUICK, "--masks", "half", "--methods", "iterate"]
    result = here(*few, "--no-pictures")
    assert result.exit_code == 0, result.output
    assert not list((folder / "audit").rglob("*.npz"))
    assert "ran without pictures" in (folder / "audit" / "report.html").read_text()
    assert here(*few).exit_code == 0  # now with pictures
    assert "holds pictures of an earlier audit" in mistake(*few, "--no-pictures")


def test_a_model_that_takes_few_images_runs_with_a_chunk_and_is_told_so(folder: Path) -> None:
    np.save(folder / "train.npy", pictures(20, 1).numpy())
    few = ["audit", "making_a_model:Narrow", *AUDIT[2:], "--masks", "half", "--methods", "iterate", "--gamma", "0.5"]
    result = here(*few, "--device", "cpu")
    assert result.exit_code == 1, result.output
    assert "raised RuntimeError: at most 17 images. It runs with 16 images at once: add --chunk 16." in result.stderr
    result = here(*few, "--device", "cpu", "--chunk", "16")
    assert result.exit_code == 0, result.output
    assert "The gamma is ignored: none of the methods (iterate) takes it.\n" in result.stderr


def test_the_seed_decides_masks_that_are_drawn(folder: Path) -> None:
    few = [*AUDIT, "--methods", "iterate", "--masks", "random:0.5"]
    masks: list[tuple[int, str]] = []
    for seed in ("1", "2", "1"):
        result = here(*few, "--seed", seed, "--out", f"audit{len(masks)}")
        assert result.exit_code == 0, result.output
        cells = sorted((folder / f"audit{len(masks)}" / "cells").glob("train*.json"))
        settings = json.loads(cells[0].read_text())["settings"]
        masks.append((settings["seed"], settings["mask"]))
    assert masks[0] == masks[2]
    assert masks[0][1] != masks[1][1]


def test_a_cell_may_be_as_large_as_its_images_ask_for(folder: Path) -> None:
    for seed, name in enumerate(("train", "control")):
        np.save(folder / f"{name}.npy", np.random.default_rng(seed).random((400, 1, 4, 4), dtype=np.float32))
    few = [*AUDIT, "--masks", "half", "--methods", "iterate", "--gamma", "0.5", "--start", "half_kept"]
    small = {"RECOLLECT_MAX_RECORD_BYTES": "30000"}
    written = []
    for _ in range(2):  # the second one resumes
        result = here(*few, "--device", "cpu", **small)
        assert result.exit_code == 0, result.output
        cells = sorted((folder / "audit" / "cells").glob("*.json"))
        assert min(cell.stat().st_size for cell in cells) > 30_000
        written.append([cell.stat().st_mtime_ns for cell in cells])
    assert written[0] == written[1]
    assert here("verify", "audit", **small).exit_code == 0
    larger = cells[0].read_bytes() + b" " * 400 * BYTES_OF_IMAGE
    cells[0].write_bytes(larger)
    assert "is JSON of more than 819,200 bytes" in here("verify", "audit", **small).output.replace("\n", " ")


@pytest.mark.parametrize(
    ("model", "train", "words"),
    [
        ("making_a_model:leaves", "train.npy", "making_a_model:leaves called sys.exit(0)"),
        ("making_a_model:Leaving", "train.npy", "The model called sys.exit(0)"),
        ("making_a_model:Planted", "making_a_model:left_by_its_items", "called sys.exit(0)"),
        (
            "training_script:build",
            "train.npy",
            "Importing training_script for training_script:build called sys.exit(2)",
        ),
    ],
)
def test_code_that_exits_does_not_pass_the_gate(folder: Path, model: str, train: str, words: str) -> None:
    parser = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('data')\nparser.parse_args()\n"
    (folder / "training_script.py").write_text(parser)
    result = here("audit", model, "--train", train, "--fail-above", "1%")
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.startswith(("recollect: ", "usage: training_script"))


def test_the_gate(folder: Path) -> None:
    few = [*QUICK, "--masks", "half", "--methods", "iterate"]
    above = here(*few, "--fail-above", "99%")
    assert above.exit_code == 3
    failed = "Model failed: 6 of 6 training images (100.0%) are recovered (MSE below 5e-04), above the limit of 99.00%."
    assert " ".join(above.stdout.split()).endswith(failed)
    assert failed in (folder / "audit" / "report.html").read_text()
    verdict = json.loads((folder / "audit" / "audit.json").read_text())["verdict"]
    assert (verdict["outcome"], verdict["limit"], verdict["threshold"]["name"]) == ("failed", 0.99, "approximate")
    exact = here(*few, "--fail-above", "50%", "--threshold", "exact", "--json")
    assert exact.exit_code == 3
    assert exact.stderr.splitlines()[-1].startswith(
        "recollect: Model failed: 6 of 6 training images (100.0%) are recovered (MSE below 1e-07)"
    )
    passed = here("audit", "making_a_model:Forgetful", *few[2:], "--methods", "refined", "--fail-above", "40%")
    assert (passed.exit_code, "Model passed: 0 of 6" in passed.stdout) == (0, True)


def test_an_audit_that_cannot_pass_is_inconclusive(folder: Path) -> None:
    other = [*QUICK, "--masks", "half", "--methods", "iterate", "--train", "control.npy", "--control", "train.npy"]
    unfit = here(*other, "--fail-above", "1%")
    assert unfit.exit_code == 4
    assert "No weights were given to the factory, and its network does not fit" in " ".join(unfit.stdout.split())
    assert here(*other, "--fail-above", "1%", "--inconclusive-passes").exit_code == 0


def test_out_of_time_it_stops_and_the_same_command_resumes(folder: Path) -> None:
    stopped = here(*TWO_ATTACKS, "--max-seconds", "1e-9")
    assert (stopped.exit_code, stopped.stdout) == (1, "")
    assert "recollect: 1e-09 seconds are over, in training / block / " in stopped.stderr
    assert stopped.stderr.endswith("Finished cells are kept, and the same command resumes the audit.\n")
    assert here(*TWO_ATTACKS, "--max-seconds", "1000").exit_code == 0


def test_verbose_prints_every_mask_membership_and_all_remarks(folder: Path) -> None:
    short, full = here(*QUICK).stdout, here(*QUICK, "--verbose").stdout
    assert len(short.splitlines()) <= 25
    for words in ("all masks", "AUC 1.000", "note: "):
        assert words in full
        assert words not in short


def test_a_checkpoint_a_mask_of_ones_own_and_auto(folder: Path) -> None:
    from recollect.checkpoints import save_checkpoint

    save_checkpoint(folder / "net.safetensors", FullyConnected((3, 8, 8), layers=2, width=4), {})
    Image.fromarray(np.kron([[0, 255]], np.ones((8, 4))).astype(np.uint8)).save(folder / "mine.png")
    np.save(folder / "more.npy", pictures(9, 3).numpy())
    result = here(
        "audit", "net.safetensors", "--train", "more.npy", "--masks", "mine.png,random:30%", "--gamma", "auto",
        "--methods", "blind", "--attractors", "1",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads((folder / "audit" / "audit.json").read_text())
    assert {row["mask"] for row in found["summary"]} == {"mine.png", "random:30%"}
    assert len(found["settings"]["tried"]) == 6  # the start is the paper's
    assert len(found["attractors"]) == 1


# --- help


def test_the_help_lists_what_is_registered() -> None:
    shown = here("audit", "--help", COLUMNS="200").stdout
    for name, method in METHODS.items():
        assert f"{name}: {method.summary}"[:60] in shown, name
    for listed in (*PAPER_MASKS, "blur:1.5", "coarse:4", ".onnx", "package.module:factory", *SOURCES):
        assert listed in shown, listed
    assert "Default: blind,refined,iterate,known." in shown
    assert "{" not in shown.split("Arguments")[1]  # every list is filled in


def test_the_help_names_every_source_in_a_narrow_terminal() -> None:
    shown = here("audit", "--help", COLUMNS="80").stdout
    assert [source for source in SOURCES if source not in shown] == []
    assert "..." not in shown


# --- mistakes: one sentence, exit code 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--train", "nowhere.npy"], "nowhere.npy"),
        (["--train", "./nowhere"], "nowhere"),
        (["--train", "hello world"], "There is no source 'hello world'"),
        (["--train", "fotos?count=4"], "There is no source 'fotos'"),
        (["--train", "photos?cuont=4"], "no parameter 'cuont'"),
        (["--train", "photos?count=4&size=9"], "differ in size (images of 3x9x9 and images of 3x8x8)"),
        (["--train", "train.npy?count=0"], "count=0 is not a whole number"),
        (["--train", "empty"], "The folder empty holds nothing that ends like an image file"),
        (["--train", "./empty"], "The folder empty holds nothing"),
        (["--control", "train.npy"], "Every control image is also a training image"),
        (["--control", "photos?count=4&size=9"], "differ in size (images of 3x8x8 and images of 3x9x9)"),
        (["--masks", "hlaf"], "There is no mask 'hlaf'"),
        (["--masks", "random:abc"], "'abc' is not a fraction"),
        (["--masks", "random:130%"], "must lie in [0, 1]"),
        (["--masks", "nowhere.png"], "There is no mask file nowhere.png"),
        (["--masks", ""], "There is no mask ''"),
        (["--methods", "blind,itrate"], "There is no method 'itrate'"),
        (["--methods", ","], "At least one method"),
        (["--gamma", "big"], "--gamma takes a number or auto"),
        (["--gamma", "-1"], "gamma is a positive number"),
        (["--start", "zeros"], "There is no start mask 'zeros'"),
        (["--noise-std", "-0.1"], "zero or more, got -0.1"),
        (["--fail-above", "lots"], "--fail-above takes a share such as 1% or 0.01, not 'lots'"),
        (["--fail-above", "1"], "--fail-above takes a share such as 1% or 0.01, below 100%, not '1'"),
        (["--fail-above", "100%"], "below 100%, not '100%'"),
        (["--fail-above", "-1%"], "not '-1%'"),
        (["--fail-above", "nan"], "not 'nan'"),
        (["--max-seconds", "0"], "max_seconds is a number of seconds, more than 0; got 0.0"),
        (
            ["--threshold", "loose"],
            "A threshold is exact, approximate or a mean square error",
        ),
        (["--threshold", "exact"], "--threshold says how --fail-above is decided; add --fail-above 1%, or leave"),
        (["--inconclusive-passes"], "--inconclusive-passes says how --fail-above is decided"),
        (["--worker-gpus", "1"], "name the cluster with --on, or leave them out"),
        (["--worker-cpus", "1"], "--worker-cpus and --worker-gpus are for the workers of a cluster"),
        (["--out", "train.npy"], "train.npy is a file; results need a folder"),
        (["--out", "train.npy/below"], "Nothing can be written to the folder"),
        (["--input-range", "5"], "range"),
        (["--mean", "a,b"], "mean"),
        (["--channels", "2"], "channels is 1 (grey) or 3 (colour), got 2"),
        (["--batch", "0"], "batch is a number of images"),
        (["--output", "7"], "output"),
        (["--weights", "nowhere.safetensors"], "nowhere.safetensors"),
        (["--device", "nowhere"], "The device nowhere cannot be used"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_mistake_is_one_sentence(folder: Path, changes: list[str], words: str) -> None:
    (folder / "empty").mkdir()
    told = mistake(*QUICK, *changes)
    assert any(word in told for word in words.split("|")), told


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere.pt2", "nowhere.pt2"),
        ("train.npy", "train.npy is not a file of a known kind"),
        ("text.txt", "is not a file of a known kind"),
        ("text.onnx", "text.onnx"),
        (".", "."),
        ("making_a_model:nothing", "has no nothing; it has"),
        ("not_there:model", "There is no module not_there"),
        ("making_a_model:raises", "raised RuntimeError: the disk with the weights is not mounted"),
        ("making_a_model:broken", "cannot take images of 3x8x8"),
        ("json:dumps", "was called without arguments and raised TypeError"),
    ],
)
def test_a_model_that_is_none_is_one_sentence(folder: Path, model: str, words: str) -> None:
    for name in ("text.txt", "text.onnx"):
        (folder / name).write_text("This is not a model.\n" * 20)
    assert words in mistake("audit", model, "--train", "train.npy")


def test_a_model_that_needs_pickle_is_refused_with_advice(folder: Path) -> None:
    torch.save({"f": FullyConnected}, folder / "pickle.pt")
    result = here("audit", "pickle.pt", "--train", "train.npy")
    assert result.exit_code == 2
    assert "pickle.pt is refused" in result.stderr
    assert "save_file(" in result.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_where_there_is_none(folder: Path) -> None:
    assert "The device cuda cannot be used" in mistake(*QUICK, "--device", "cuda")


@pytest.mark.parametrize("arguments", [["audit"], [*QUICK, "--attractors", "-1"], [*QUICK, "--nosie", "1"]])
def test_usage_errors_are_typers_own(folder: Path, arguments: list[str]) -> None:
    result = here(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert "Traceback" not in result.output


def test_an_audit_of_no_images_is_one_sentence(folder: Path) -> None:
    assert "An audit needs training images" in mistake("audit", "m.pt2")


def test_shares_and_gammas_are_read() -> None:
    assert [read_rate_limit(text) for text in ("1%", "0.01", "0", "0%", "99%", ".5")] == [0.01, 0.01, 0, 0, 0.99, 0.5]
    assert [read_number("gamma", text) for text in (None, "auto", "0.5", "1e-1")] == [None, "auto", 0.5, 0.1]
    with pytest.raises(InputError):
        read_rate_limit("%")


# --- as a process: exit codes, a full disk, Ctrl-C and kill, and resuming


def test_exit_codes_of_the_process_and_no_traceback(folder: Path) -> None:
    code, out, err = run(folder, *AUDIT, "--masks", "half", "--methods", "iterate", "--fail-above", "1%", "--json")
    assert code == 3
    assert json.loads(out)["command"].startswith("recollect audit making_a_model:Planted --train train.npy")
    assert err.count("\n") == 1  # the verdict alone
    code, out, err = run(folder, *QUICK, "--masks", "hlaf")
    assert (code, out) == (2, "")
    assert err.startswith("recollect: There is no mask 'hlaf'.")


def test_a_disk_that_is_full_is_one_sentence(folder: Path) -> None:
    limited = 'ulimit -f 2; exec "$0" "$@"'  # two blocks a file, after which the system refuses
    done = subprocess.run(
        ["bash", "-c", limited, __import__("sys").executable, "-B", "-m", "recollect", *QUICK], cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def finished(folder: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (folder / "audit" / "cells").glob("*.json")}


def facts(folder: Path) -> dict[str, Any]:
    """audit.json without what has to differ between two runs."""
    found = json.loads((folder / "audit" / "audit.json").read_text())
    found["provenance"].pop("started")
    found.pop("command")
    found.pop("checksum")
    for row in found["summary"]:
        row.pop("seconds")
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same audit, never stopped."""
    folder = fill(tmp_path_factory.mktemp("whole"))
    assert go(folder).exit_code == 0
    return folder


def go(folder: Path) -> Result:
    """The command in this process, in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return here(*TWO_ATTACKS)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle_it_resumes_to_the_same_result(tmp_path: Path, whole: Path, stop: signal.Signals) -> None:
    code, out, err = run(fill(tmp_path), *TWO_ATTACKS, SIGNAL_IN_THE_MIDDLE=str(int(stop)))
    assert out == ""
    if stop == signal.SIGINT:
        sentence = "recollect: interrupted; finished work is kept, and the same command resumes it."
        assert (code, err.splitlines()[-1]) == (130, sentence)
    else:
        assert code == -signal.SIGKILL
    before = finished(tmp_path)
    assert len(before) == 3
    for name in before:
        assert json.loads((tmp_path / "audit" / "cells" / name).read_text())["mse"]
    assert not (tmp_path / "audit" / "audit.json").exists()
    assert go(tmp_path).exit_code == 0
    assert {name: t for name, t in finished(tmp_path).items() if name in before} == before  # none was run again
    assert (tmp_path / "audit" / "images.csv").read_bytes() == (whole / "audit" / "images.csv").read_bytes()
    assert facts(tmp_path) == facts(whole)
