import json
from functools import partial
from pathlib import Path

import pytest
import torch

from recollect import Blind, FullyConnected, Stop, load, mask, observe, train_to_loss
from recollect.degradation import half_kept
from tests.benchmarks import running
from tests.benchmarks.running import ROOT, benchmark

run, refused = (partial(function, "recovery") for function in (running.run, running.refused))
recovery, baseline = benchmark("recovery"), benchmark("baseline_recovery")


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path: Path) -> None:
    """That it runs, and that all contenders agree; never how fast."""
    out = tmp_path / "numbers.json"
    shown = run("--cases", "quick", "--growth", "12", "30", "--budget", "100", "--threads", "1", "--out", str(out))
    assert "| quick | 12 |" in shown
    numbers = json.loads(out.read_text())
    case = numbers["cases"]["quick"]
    assert case["image_steps"] == sum(case["batch_sizes"]) * 39
    for contender in ("one_by_one", "batched"):
        assert case[contender]["difference"]["settled"] > 0
        assert case[contender]["difference"]["largest"] < 1e-4
    assert [row["images"] for row in numbers["growth"]["quick"]] == [12, 30]
    assert run("--tables", str(out)) in shown


@pytest.mark.gpu
def test_it_runs_on_a_gpu(tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    run("--gpu", "--cases", "quick", "--growth", "12", "--budget", "0.1", "--turns", "1", "--out", str(out))
    assert json.loads(out.read_text())["cases"]["quick"]["one_by_one"]["seconds"] > 0


def test_the_rounds_of_the_papers_loop_are_known_without_running_it() -> None:
    images = load("photos?count=8&size=8")
    f = FullyConnected(images.shape, layers=4, width=128)
    train_to_loss(f, images, until=1e-6)
    y, settings = observe(images, mask("block", images.shape)).y, baseline.Settings(0.5, limit=30)
    calm = recovery.Calm(y)
    found = Blind(limit=30)(f.eval(), y, trace=calm)
    expected = recovery.rounds_by_the_papers_rule(found, calm.rounds, 30)
    _, theirs = baseline.recover_one_by_one(f, y, half_kept(y).keep, settings, 1000, torch.arange(len(y)))
    assert theirs.rounds.tolist() == expected.tolist()
    more = (expected - found.rounds)[found.stop == Stop.CONVERGED]
    assert len(set(more.tolist())) > 1  # not the same for all


@pytest.mark.slow
def test_what_is_long_is_measured_in_part_and_the_rest_by_the_rounds_that_are_left(tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    shown = run(
        "--cases", "quick", "--growth", "--budget", "0.001", "--turns", "1", "--threads", "1", "--out", str(out)
    )
    case = json.loads(out.read_text())["cases"]["quick"]
    one = case["one_by_one"]
    assert one["part"] == "1 image"
    assert "(from 1 image)" in shown
    rounds = one["image_steps_per_second"] * one["measured_seconds"] / 40
    at_most = case["images"] * case["limit"]
    assert rounds / at_most < one["measured_share"] < 1
    assert one["seconds"] == pytest.approx(one["measured_seconds"] / one["measured_share"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--repeats", "0"], "a whole number from 1 on is wanted, not '0'"),
        (["--growth", "ten"], "a whole number from 1 on is wanted, not 'ten'"),
        (["--budget", "-1"], "--budget is a number of seconds"),
        (["--cases", "demo", "--checkpoint", "{folder}/page.md"], "page.md"),
        (["--tables", "missing.json"], "missing.json"),
        (["--tables", str(ROOT / "results/layer-kernels.json")], "was not written by this benchmark"),
        (["--cases", "quick", "--out", "{folder}"], "it is a folder"),
        (["--cases", "quick", "--out", "{folder}/page.md/speed.json"], "cannot be written"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n")
    assert words in refused(*(argument.format(folder=tmp_path) for argument in arguments))
