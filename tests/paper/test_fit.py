import math
import shutil
from dataclasses import replace
from pathlib import Path

from recollect.distributed.jobs import Budget, Shared
from recollect.paper.cells import Cell
from recollect.paper.fit import is_trained, train, training_task
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.training.saved_state import FILE
from tests.paper.making import FIT, SHORT, make_experiment, make_workspace


def test_a_paused_training_is_not_finished_and_resumes(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    images = workspace.images(FIT, "train")
    paused = train(FIT, images, tmp_path / "work", 0.0, workspace.device)
    assert not paused["finished"]
    resumed = train(FIT, images, tmp_path / "work", math.inf, workspace.device)
    assert resumed["finished"]
    assert resumed["reached"]
    assert [milestone["wanted"] for milestone in resumed["milestones"]] == list(FIT.milestones)


def test_a_training_whose_weights_are_gone_is_not_trained(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert not is_trained(workspace, FIT)
    assert run([make_experiment(("block",))], SMALL, workspace)
    assert is_trained(workspace, FIT)
    next(iter(workspace.checkpoints(FIT).values())).unlink()
    assert not is_trained(workspace, FIT)


def test_a_finished_training_leaves_no_state_but_a_paused_one_does(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    state = workspace.work / FIT.name / FILE
    images = workspace.images(FIT, "train")
    paused = train(FIT, images, state.parent, 0.0, workspace.device)
    training_task(workspace, FIT, Shared(lambda: images), Budget()).keep(paused)
    assert state.exists()
    assert run([make_experiment(("block",))], SMALL, workspace)
    assert not state.exists()
    log: list[str] = []
    assert run([make_experiment(("block", "half"))], SMALL, workspace, log=log.append)
    assert not any("trained:" in line for line in log)


def test_weights_at_losses_that_nothing_needs_are_removed_after_the_training(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    last = FIT.milestones[-1]
    experiment = make_experiment(("block",))
    only_last = replace(experiment, cells=lambda scale: [c for c in experiment.cells(scale) if c.loss == last])
    assert run([only_last], SMALL, workspace, kept={FIT: {last}})
    assert set(workspace.checkpoints(FIT)) == {last}
    assert is_trained(workspace, FIT, {last})
    assert not is_trained(workspace, FIT)
    log: list[str] = []
    assert run([experiment], SMALL, workspace, log=log.append, kept={FIT: set(FIT.milestones)})
    assert sum("trained:" in line for line in log) == 1  # the weights at the first loss were gone
    assert set(workspace.checkpoints(FIT)) == set(FIT.milestones)


def test_a_second_training_replaces_the_first_only_if_it_reaches_more(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    first = replace(FIT, milestones=(1e-2, 1e-30), limit_steps=SHORT)
    assert run([make_experiment(("block",), first)], SMALL, workspace)
    kept = workspace.store.training(first)
    further = replace(FIT, milestones=FIT.milestones)
    shorter = replace(first, limit_steps=1)
    for mask, fit, stays in (("half", shorter, True), ("dust", first, True), ("frame", further, False)):
        shutil.rmtree(tmp_path / "work")
        log: list[str] = []
        run([make_experiment((mask,), fit)], SMALL, workspace, log=log.append)
        assert "trained:" in log[0]
        assert ("The record of an earlier training stays" in log[0]) is stays
        assert (workspace.store.training(first) == kept) is stays


def test_a_training_that_ends_above_its_last_loss_is_used_at_its_best(tmp_path: Path) -> None:
    fit = replace(FIT, milestones=(1e-2, 1e-30), limit_steps=SHORT)
    workspace, experiment = make_workspace(tmp_path), make_experiment(("block",), fit)
    log: list[str] = []
    assert run([experiment], SMALL, workspace, log=log.append)
    assert "short of 1e-30" in log[0]
    assert {line.split()[1] for line in log[1:-1]} == {"1e-02", "best"}
    last = Cell(fit, 1e-30, "control", "block", "known")
    record = workspace.store.find_or_best(last)
    assert record is not None
    assert record.cell["loss"] == "best"
    assert record.provenance["train_loss"] < 1e-2
    assert not workspace.store.is_missing(last)
    again: list[str] = []
    assert run([experiment], SMALL, workspace, log=again.append)
    assert len(again) == 1
