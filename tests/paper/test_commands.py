import subprocess
import sys
from pathlib import Path

import pytest

from recollect.paper.commands import Options, main
from tests.cli.running import here

ROOT = Path(__file__).parents[2]
MISTAKES = [
    (["run", "acurate"], "no experiment 'acurate'; there are: training, accurate"),
    (["run", ","], "Name at least one experiment"),
    (["figure", "nothing"], "no experiment 'nothing'"),
    (["run", "accurate", "--scale", "huge"], "no scale 'huge'"),
    (["run", "accurate", "--scale", "full"], "say where it is with --data DIR"),
    (["run", "accurate", "--data", "not/there"], "There is no folder not/there"),
    (["run", "accurate", "--only", "fc99"], "Nothing fits --only fc99. The trainings are fc10-lrelu-adam-photos24, "),
    (["run", "accurate", "--max-seconds", "-3"], "--max-seconds is a number of seconds, more than 0; got -3."),
    (["run", "accurate", "--device", "abacus"], "The device abacus cannot be used"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    if arguments[0] == "run":
        result = here("paper", *arguments)
        assert result.exit_code == 2
        assert sentence in result.output


def test_real_data_at_the_small_scale_has_records_of_its_own(tmp_path: Path) -> None:
    own = Options(data=str(tmp_path)).bench
    assert own.results.folder.name == own.work.name == "small-real"
    assert Options().bench.results.folder.name == "small"


def test_the_list_tells_every_experiment_and_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = here("paper", "list", "--scale", "full")
    assert result.exit_code == 0
    assert "moderate-fc: approximate recovery, FC-20 LReLU on 25,000 Tiny ImageNet images" in result.stdout
    assert "0 of 42 cells (0 s), 0 of 1 trainings (0 s)" in result.stdout


def test_both_doors_lead_to_the_same(tmp_path: Path) -> None:
    plain = [sys.executable, "-m", "recollect.paper", "list", "--results", str(tmp_path)]
    typer = [sys.executable, "-m", "recollect", "paper", "list", "--results", str(tmp_path)]
    told = [subprocess.run(c, cwd=ROOT, capture_output=True, text=True, check=True).stdout for c in (plain, typer)]
    assert told[0] == told[1]
    assert "theorem-1" in told[0]


def test_nothing_is_said_to_one_who_no_longer_listens() -> None:
    command = f"{sys.executable} -m recollect.paper list --scale full | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("scale full")
    assert done.stderr == ""
