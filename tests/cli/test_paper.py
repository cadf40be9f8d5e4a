import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import here, mistake

MISTAKES = [
    (["run", "acurate"], "There is no experiment 'acurate'; choose from training, accurate"),
    (["run", ","], "Name at least one experiment"),
    (["figure", "nothing"], "no experiment 'nothing'"),
    (["run", "accurate", "--scale", "huge"], "no scale 'huge'"),
    (["run", "accurate", "--scale", "full"], "say where it is with --data DIR"),
    (["run", "accurate", "--data", "not/there"], "There is no folder not/there"),
    (["run", "accurate", "--only", "fc99"], "Nothing fits --only fc99. The trainings are fc10-lrelu-adam-photos24, "),
    (["run", "accurate", "--max-seconds", "-3"], "--max-seconds is a positive number, got -3.0."),
    (["run", "accurate", "--device", "abacus"], "The device abacus cannot be used"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in mistake("paper", *arguments)


def test_the_list_shows_every_experiment_and_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = here("paper", "list", "--scale", "full")
    assert result.exit_code == 0
    assert "moderate-fc: approximate recovery, FC-20 LReLU on 25,000 Tiny ImageNet images" in result.stdout
    assert "0 of 72 cells (0 s), 0 of 2 trainings (0 s)" in result.stdout


def test_facts_are_computed_once_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for expected in (2, 1):  # the facts and the summary, then the summary alone
        result = here("paper", "run", "theorem-1")
        assert result.exit_code == 0, result.output
        assert len(result.stdout.splitlines()) == expected
    assert "theorem-1.md" in here("paper", "figure", "theorem-1").stdout
    assert "8 of 8" in Path("results/paper/small/tables/theorem-1.md").read_text()


def test_a_run_that_is_not_complete_exits_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = here(
        "paper", "run", "psnr", "--only", "unet-softplus-muon*block", "--max-seconds", "1e-9", "--by-training"
    )
    assert result.exit_code == 1, result.output
    assert "missing, still to train: unet-softplus-muon-photos6." in result.stdout


def test_a_reader_that_closes_its_end_causes_no_message() -> None:
    command = f"{sys.executable} -m recollect paper list --scale full | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("scale full")
    assert done.stderr == ""
