from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from recollect.distributed.jobs import Budget
from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.origin import COMMIT, commit
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.store import Store
from recollect.paper.time_left import SecondsOfCells
from tests.benchmarks.running import benchmark, refused
from tests.paper.making import FIT, make_experiment, make_workspace

short_jobs, merge_results = benchmark("short_jobs"), benchmark("merge_results")
LONG = replace(FIT, activation="prelu", goal_seconds=2000.0)  # by its name the second
SHORT = replace(FIT, optimizer="muon")


def three_trainings() -> Experiment:
    cells = [Cell(fit, 1e-3, "train", "block", "known") for fit in (FIT, LONG, SHORT)]
    return replace(make_experiment(), cells=lambda _: cells)


def test_a_training_that_would_not_end_in_time_waits_and_shorter_ones_do_not(tmp_path: Path) -> None:
    log: list[str] = []
    budget = Budget(1000.0, lambda: 0.0)
    in_time = short_jobs.InTime(SecondsOfCells(), lambda: None)
    workspace = make_workspace(tmp_path)
    by_training = partial(run, [three_trainings()], SMALL, workspace, budget=budget, by_training=True, log=log.append)
    assert not by_training(runner=in_time)
    assert [line.split(":")[0] for line in log if "trained:" in line] == [FIT.name, SHORT.name]
    assert f"{LONG.name}: not begun, for it takes about 2000 s, and 1000 s are left" in log
    again = short_jobs.InTime(SecondsOfCells(), lambda: None)  # the first of a run is begun all the same
    assert by_training(runner=again)


def test_a_network_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    images = replace(FIT.images, name="absent4")
    cells = [Cell(replace(FIT, images=images), 1e-3, "train", "block", "known"), *three_trainings().cells(SMALL)]
    log: list[str] = []
    in_time = short_jobs.InTime(SecondsOfCells(), lambda: None)
    experiment = replace(make_experiment(), cells=lambda _: cells)
    workspace = make_workspace(tmp_path)
    assert not run([experiment], SMALL, workspace, runner=in_time, by_training=True, log=log.append)
    assert "fc3-lrelu-adam-absent4: There is no SVHN file" in log[0]
    assert sum("trained:" in line for line in log) == 3


def test_facts_that_fail_do_not_end_the_run(tmp_path: Path) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise ZeroDivisionError("of facts")

    log: list[str] = []
    experiment = replace(three_trainings(), facts=fail)
    assert not run([experiment], SMALL, make_workspace(tmp_path), small_runner=short_jobs.going_on, log=log.append)
    assert "ZeroDivisionError: of facts" in log[-2]
    assert "3 of 3 cells recorded" in log[-1]


def test_what_is_new_is_brought_back_in_archives_and_merged(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "there")
    assert run([three_trainings()], SMALL, workspace)
    (first, *_), out = sorted((workspace.store.folder / "records").iterdir()), tmp_path / "out"
    before = short_jobs.contents(workspace.store.folder)
    del before[first.relative_to(workspace.store.folder)]
    (path,) = short_jobs.pack_new(workspace, before, out)
    merge_results.main([str(out), str(tmp_path / "home")])
    assert short_jobs.contents(tmp_path / "home") == {Path("records", first.name): first.read_bytes()}
    archives = merge_results.pack(files_of(workspace.store), out, 1)  # each is larger than a byte
    assert len(archives) == 3
    merge_results.main([str(out), str(tmp_path / "home")])
    assert short_jobs.contents(tmp_path / "home") == short_jobs.contents(workspace.store.folder)
    assert [path, *archives[1:]] == sorted(out.iterdir())
    merge_results.pack({}, out, 1)
    assert not any(out.iterdir())


def files_of(store: Store) -> dict[Path, Path]:
    return {name: store.folder / name for name in short_jobs.contents(store.folder)}


def test_a_copy_that_is_no_repository_needs_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMIT, raising=False)
    monkeypatch.setenv("PATH", "")  # as without git
    assert "name its commit with --commit" in refused("short_jobs", "--out", str(tmp_path))
    commit.cache_clear()
