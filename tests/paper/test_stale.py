"""What is replaced between two runs: images, checkpoints, a prior."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect import InputError
from recollect.checkpoints import load_checkpoint, load_checkpoint_about, save_checkpoint
from recollect.diffusion import can_open_priors
from recollect.distributed.jobs import Budget
from recollect.paper.cells import Cell
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace
from recollect.version import __version__
from tests.diffusion.folders import write_prior, write_schedule
from tests.paper.making import FIT, make_experiment, make_workspace

EXPERIMENT = make_experiment(("block",))


def outcome(folder: Path) -> dict[str, Any]:
    """Every record of a folder, less times."""
    return {record.key: replace(record, seconds=0.0) for record in Store(folder / "results").records()}


def lines_of(workspace: Workspace, experiment: Any = EXPERIMENT) -> list[str]:
    log: list[str] = []
    run([experiment], SMALL, workspace, log=log.append)
    return log


def replace_images(folder: Path, part: str) -> None:
    values = np.random.default_rng(7).integers(0, 256, (4, 3, 8, 8), dtype=np.uint8)
    np.savez(folder / f"made4-{part}.npz", images=values)


def test_other_control_images_are_measured_again(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "changed")
    lines_of(workspace)
    replace_images(tmp_path / "changed", "control")
    log = lines_of(workspace)
    aside = tmp_path / "changed" / "results" / "earlier" / "1"
    assert log[0] == (
        f"{FIT.name}: 2 of its cells were measured on other images; these records are now in {aside}, and are "
        "measured again."
    )
    assert len(Store(aside).records()) == 2
    fresh = make_workspace(tmp_path / "fresh")
    replace_images(tmp_path / "fresh", "control")
    lines_of(fresh)
    assert outcome(tmp_path / "changed") == outcome(tmp_path / "fresh")
    assert len(lines_of(workspace)) == 1


def test_weights_of_other_training_images_are_refused(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    lines_of(workspace)
    replace_images(tmp_path, "train")
    with pytest.raises(InputError, match="is of another network, recipe or training set"):
        lines_of(workspace)
    shutil.rmtree(tmp_path / "work")
    lines_of(workspace)
    fresh = make_workspace(tmp_path / "fresh")
    replace_images(tmp_path / "fresh", "train")
    lines_of(fresh)
    assert outcome(tmp_path) == outcome(tmp_path / "fresh")


def test_other_weights_of_a_checkpoint_are_measured_again(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    lines_of(workspace)
    before = outcome(tmp_path)
    path = workspace.checkpoints(FIT)[1e-3]
    network, about = load_checkpoint(path).network, load_checkpoint_about(path)
    next(network.parameters()).data *= 1.01
    save_checkpoint(path, network, about)
    assert "4 of its cells were measured with other weights" in lines_of(workspace)[0]
    changed = outcome(tmp_path)
    assert {name for name in before if before[name] != changed[name]} == {name for name in before if "1e_03" in name}


def test_a_new_training_sets_the_cells_of_an_earlier_version_aside(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    lines_of(workspace)
    before = outcome(tmp_path)
    for record in workspace.store.records():
        workspace.store.add(replace(record, provenance={**record.provenance, "versions": {"recollect": "0.0.1"}}))
    workspace.store.pack()
    shutil.rmtree(tmp_path / "work")
    (facts,) = workspace.store.trainings()
    workspace.store.add_training(FIT, {**facts, "provenance": {"versions": {"recollect": "0.0.1"}}})
    assert any("6 of its cells were measured with an earlier version" in line for line in lines_of(workspace))
    assert len(Store(tmp_path / "results" / "earlier" / "1").records()) == 6
    assert outcome(tmp_path) == before


@pytest.mark.parametrize("version", ["0.0.1", __version__])
def test_a_training_that_is_paused_sets_nothing_aside(version: str, tmp_path: Path) -> None:
    """Its weights may be lost before it ends, and what was measured before would then be gone for nothing."""
    fit = replace(FIT, milestones=(1.0, 1e-3))  # the first is passed at once
    workspace, experiment = make_workspace(tmp_path), make_experiment(("block",), fit)
    lines_of(workspace, experiment)
    (facts,) = workspace.store.trainings()
    of_version = {"versions": {"recollect": version}}
    for record in workspace.store.records():
        provenance = {**record.provenance, **of_version, "model": "other weights"}
        workspace.store.add(replace(record, provenance=provenance))
    workspace.store.add_training(fit, {**facts, "provenance": of_version})
    workspace.store.pack()
    before = outcome(tmp_path)
    shutil.rmtree(tmp_path / "work")
    log: list[str] = []
    more = make_experiment(("block", "dust"), fit)
    for _ in range(2):  # the second finds the weights of the first
        budget = Budget(1e-6, lambda: float(sum("paused" in line for line in log)))
        assert not run([more], SMALL, workspace, budget=budget, log=log.append)
        assert workspace.checkpoints(fit)
        assert outcome(tmp_path) == before
    log = lines_of(workspace, more)
    assert "6 of its cells were measured with" in log[0]
    assert len(outcome(tmp_path)) == 12


def test_a_checkpoint_of_other_images_is_refused_by_name(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    lines_of(workspace)
    path = workspace.checkpoints(FIT)[1e-3]
    about = load_checkpoint_about(path)
    save_checkpoint(path, load_checkpoint(path).network, about | {"data_hash": "another"})
    with pytest.raises(InputError, match=r"loss-1e-03\.safetensors was trained on other images"):
        lines_of(workspace, make_experiment(("block", "dust")))


def test_records_are_kept_where_the_images_are_not(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    lines_of(workspace)
    assert len(lines_of(replace(workspace, data=None))) == 1


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_another_schedule_of_a_prior_is_measured_again(tmp_path: Path) -> None:
    fit = replace(FIT, images=replace(FIT.images, prior="own"))
    experiment = replace(EXPERIMENT, cells=lambda _: [Cell(fit, 1e-3, "train", "block", "ddnm")])
    workspace = make_workspace(tmp_path)
    write_prior(tmp_path / "own")
    lines_of(workspace, experiment)
    assert len(lines_of(workspace, experiment)) == 1
    write_schedule(tmp_path / "own", "linear")
    assert "1 of its cells were measured with another prior" in lines_of(workspace, experiment)[0]
