import signal
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from recollect import InputError
from recollect.distributed.jobs import Budget, Job, in_this_process
from recollect.paper.cells import Cell
from recollect.paper.run import gather, run
from recollect.paper.scales import SMALL
from tests import warm
from tests.paper.making import FIT, cell_lines, make_experiment, make_workspace, run_lines


def test_one_training_serves_all_cells_and_nothing_is_computed_twice(tmp_path: Path) -> None:
    log = run_lines(tmp_path)
    assert sum("trained:" in line for line in log) == 1
    assert sum("accurate" in line for line in log) == len(cell_lines(tmp_path)) == 12
    assert log[1].startswith("fc3-lrelu-adam-made4 1e-03")  # the lowest loss first
    assert "12 of 12 cells recorded. They took " in log[-1]
    before = cell_lines(tmp_path)
    assert len(run_lines(tmp_path)) == 1
    assert cell_lines(tmp_path) == before


def test_another_mask_computes_only_what_is_new(tmp_path: Path) -> None:
    run_lines(tmp_path, "block")
    before = cell_lines(tmp_path)
    log = run_lines(tmp_path, "block", "half")
    assert not any("trained:" in line for line in log)
    assert [" half " in line for line in log[:-1]] == [True] * 6
    assert before.items() <= cell_lines(tmp_path).items()
    assert len(cell_lines(tmp_path)) == 12


def test_if_the_checkpoints_are_gone_it_trains_again_for_missing_cells_alone(tmp_path: Path) -> None:
    run_lines(tmp_path, "block")
    for path in (tmp_path / "work").rglob("*.safetensors"):
        path.unlink()
    assert len(run_lines(tmp_path, "block")) == 1
    log = run_lines(tmp_path, "block", "half")
    assert sum("trained:" in line for line in log) == 1
    assert len(log) == 1 + 6 + 1


def test_a_time_limit_ends_between_two_batches_and_the_next_call_resumes(tmp_path: Path) -> None:
    seconds = 0.0
    log: list[str] = []

    def take_400_seconds(line: str) -> None:
        nonlocal seconds
        seconds += 400
        log.append(line)

    workspace = make_workspace(tmp_path)
    assert not run([make_experiment()], SMALL, workspace, budget=Budget(0.0, lambda: seconds))
    assert not (tmp_path / "results").exists()
    limited = Budget(1000, lambda: seconds)
    assert not run([make_experiment()], SMALL, workspace, budget=limited, log=take_400_seconds)
    assert len(log) == 1 + 2 + 1  # the training, two batches of two masks, the summary
    assert len(cell_lines(tmp_path)) == 4
    assert "4 of 12 cells recorded, 8 missing." in log[-1]
    assert run([make_experiment()], SMALL, workspace)
    assert len(cell_lines(tmp_path)) == 12


def test_patterns_select_trainings_and_cells() -> None:
    work = gather([make_experiment()], SMALL, ["1e-03*dust"])
    assert {(cell.loss, cell.mask) for cells in work.values() for cell in cells} == {(1e-3, "dust")}
    assert len(gather([make_experiment()], SMALL, ["fc3-lrelu-adam"])[FIT]) == 12


def test_a_limit_on_seeds_leaves_further_trainings_out() -> None:
    fits = [replace(FIT, seed=seed) for seed in (42, 43, 44)] + [replace(FIT, optimizer="muon")]
    experiment = replace(make_experiment(), trainings=lambda _: fits)
    assert [fit.seed for fit in gather([experiment], SMALL, seeds=2)] == [42, 43, 42]
    assert [fit.name for fit in gather([experiment], SMALL, ["*seed44"])] == ["fc3-lrelu-adam-made4-seed44"]


def test_a_method_that_lacks_something_trains_no_network(tmp_path: Path) -> None:
    fit = replace(FIT, images=replace(FIT.images, prior="nowhere"))
    experiment = replace(make_experiment(), cells=lambda _: [Cell(fit, 1e-3, "train", "block", "ddnm")])
    log: list[str] = []
    assert run([experiment], SMALL, make_workspace(tmp_path), log=log.append)
    assert log[0].startswith("ddnm is left out: ")
    assert not any("trained" in line for line in log)


def test_a_record_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    again = replace(FIT, seed=43)
    workspace = make_workspace(tmp_path)
    assert run([make_experiment(("block",), again)], SMALL, workspace)
    records = workspace.store.records()
    assert {record.provenance["seed"] for record in records} == {43}
    for record in records:
        assert {"commit", "date", "device", "precision", "train_loss", "versions"} <= set(record.provenance)
        assert ("unseen_loss" in record.provenance) == (record.cell["set"] == "control")
    facts = workspace.store.training(again)
    assert facts is not None
    assert {"commit", "date", "device"} <= set(facts["provenance"])
    assert facts["fit"]["seed"] == facts["recipe"]["seed"] == facts["network"]["seed"] == 43


@pytest.mark.parametrize("only", [["unet"], ["1e-03*dust", "unet"]])
def test_a_pattern_that_matches_nothing_is_an_error(only: list[str]) -> None:
    with pytest.raises(InputError, match=r"Nothing fits --only unet\. The trainings are fc3-lrelu-adam-made4; a cell"):
        gather([make_experiment()], SMALL, only)


def test_the_papers_own_cells_are_computed_before_all_others(tmp_path: Path) -> None:
    usual = replace(FIT, kind="fc10")
    own, others = make_experiment(("block",), usual).cells(SMALL), make_experiment(("block",), replace(usual, seed=43))
    later = [replace(own[0], method="known-400"), *others.cells(SMALL)]
    experiment = replace(make_experiment(), cells=lambda _: [*later, *own])
    log: list[str] = []
    assert run([experiment], SMALL, make_workspace(tmp_path), log=log.append)
    names = [line.split(":")[0] for entry in log[:-1] for line in entry.splitlines()]
    of_first = [name for name in names if "seed43" not in name]
    assert names[: len(of_first)] == of_first
    assert ["known-400" in name for name in of_first] == [False] * (1 + len(own)) + [True]


@pytest.mark.parametrize("by_training", [False, True])
def test_by_training_a_network_is_done_with_before_the_next_begins(by_training: bool, tmp_path: Path) -> None:
    first, second = (replace(FIT, kind="fc10", activation=activation) for activation in ("lrelu", "prelu"))
    own = [make_experiment(("block",), fit).cells(SMALL)[0] for fit in (first, second)]
    cells = [other for cell in own for other in (replace(cell, method="known-400"), cell)]
    experiment = replace(make_experiment(), cells=lambda _: cells)
    log: list[str] = []
    assert run([experiment], SMALL, make_workspace(tmp_path), log=log.append, by_training=by_training)
    kinds = ["trained" if "trained:" in line else line.split(":")[0].split()[-1] for line in log[:-1]]
    own_then_more = ["trained", "iterate", "known-400"]
    apart = ["trained", "iterate", "trained", "iterate", "known-400", "known-400"]
    assert kinds == (own_then_more * 2 if by_training else apart)


PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    from recollect.paper.run import run
    from recollect.paper.scales import SMALL
    from tests.paper.making import make_experiment, make_workspace

    lines = 0
    def log(line):
        global lines
        lines += 1
        if lines == 3:  # the training and two batches
            os.kill(os.getpid(), signal.SIGKILL)

    run([make_experiment(("block", "dust"))], SMALL, make_workspace(Path(sys.argv[1])), log=log)
"""


def test_a_run_that_was_killed_resumes_where_it_was(tmp_path: Path) -> None:
    assert warm.run(textwrap.dedent(PROGRAM), str(tmp_path)).code == -signal.SIGKILL
    before = cell_lines(tmp_path)
    assert len(before) == 4
    log = run_lines(tmp_path)
    assert not any("trained:" in line for line in log)
    assert len(log) - 1 == 12 - 4
    assert before.items() <= cell_lines(tmp_path).items()


def test_after_a_failed_cell_the_facts_are_computed_all_the_same(tmp_path: Path) -> None:
    def fail(jobs: Iterable[Job], budget: Budget, log: Callable[[str], None]) -> bool:
        in_this_process(jobs, budget, log)
        return False

    experiment = replace(make_experiment(), facts=lambda _workspace, _scale: {"answer": 1})
    workspace = make_workspace(tmp_path)
    assert not run([experiment], SMALL, workspace, runner=fail)
    assert workspace.store.facts(experiment.name) == {"answer": 1}
