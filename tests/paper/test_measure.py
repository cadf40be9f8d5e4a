import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recollect.diffusion import can_open_priors
from recollect.paper.cells import Cell
from recollect.paper.experiment import Experiment
from recollect.paper.measure import shares
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.store import Store
from tests.diffusion.folders import write_prior
from tests.paper.making import FIT, cell_lines, make_experiment, make_workspace, run_lines


def test_masks_measured_in_one_batch_give_what_each_gives_alone(tmp_path: Path) -> None:
    together, alone = tmp_path / "together", tmp_path / "alone"
    run_lines(together)
    run_lines(alone, masks_together=0)
    assert set(cell_lines(together)) == set(cell_lines(alone))
    both = [Store(folder / "results").records() for folder in (together, alone)]
    for a, b in zip(*both, strict=True):
        assert a.stop == b.stop
        assert a.steps == pytest.approx(b.steps, abs=3)  # rounding differs with the batch
        assert a.mse == pytest.approx(b.mse, rel=1e-2)
        assert a.seconds > 0


def test_a_sample_of_the_images_is_attacked_if_asked_for(tmp_path: Path) -> None:
    sampled = replace(FIT, images=replace(FIT.images, attacked=2))
    assert run([make_experiment(("block",), sampled)], SMALL, make_workspace(tmp_path))
    records = Store(tmp_path / "results").records()
    assert {len(record.mse) for record in records} == {2}
    assert {record.provenance["images"]["count"] for record in records} == {2}


def test_the_seconds_of_a_batch_are_divided_by_the_work_of_each_mask() -> None:
    assert shares(torch.tensor([9, 9, 29, 29]), 2) == pytest.approx([0.25, 0.75])
    assert shares(torch.zeros(6, dtype=torch.int64), 2) == pytest.approx([1 / 3] * 3)  # DDNM counts no steps


def test_every_record_names_commit_day_device_precision_and_seed(tmp_path: Path) -> None:
    cells = [Cell(FIT, FIT.milestones[-1], "train", "block", method) for method in ("known", "biharmonic")]
    other = replace(FIT, seed=43)
    cells.append(Cell(other, other.milestones[-1], "train", "block", "blind"))
    workspace = make_workspace(tmp_path)
    assert run([replace(make_experiment(), cells=lambda _: cells)], SMALL, workspace)
    about = [record.provenance for record in workspace.store.records()]
    about += [facts["provenance"] for facts in workspace.store.trainings()]
    assert len(about) == 5
    for one in about:
        assert {"commit", "date", "device", "precision", "seed"} <= set(one)
    assert [one["seed"] for one in about[3:]] == [42, 43]
    assert about[3]["precision"]["steps"][0]["forward"] == "float32"


def with_prior(prior: str) -> Experiment:
    fit = replace(FIT, images=replace(FIT.images, prior=prior))
    cells = [Cell(fit, loss, "train", "block", "ddnm") for loss in fit.milestones]
    return replace(make_experiment(), cells=lambda _: cells)


def save_prior(folder: Path) -> None:
    write_prior(folder)


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_the_generic_method_needs_no_weights(tmp_path: Path) -> None:
    run_lines(tmp_path, "block")
    shutil.rmtree(tmp_path / "work")
    save_prior(tmp_path / "own")
    log: list[str] = []
    for _ in range(2):
        assert run([with_prior("own")], SMALL, make_workspace(tmp_path), log=log.append)
    assert not any("trained" in line for line in log)
    assert [line.split(":")[0] for line in log if "accurate" in line] == ["made4 train block ddnm"]
    assert not (tmp_path / "work").exists()


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_a_prior_among_the_data_sets_is_used_if_it_exists(tmp_path: Path) -> None:
    log: list[str] = []
    assert run([with_prior("own")], SMALL, make_workspace(tmp_path), log=log.append)
    assert (
        log[0]
        == f"ddnm is left out: for made4 it needs a prior in {tmp_path / 'own'} (docs/concepts/generic-baseline.md)."
    )
    assert log[-1].endswith("0 of 2 cells recorded, 2 missing.")
    save_prior(tmp_path / "own")
    assert run([with_prior("own")], SMALL, make_workspace(tmp_path), log=log.append)
    (record,) = Store(tmp_path / "results").records()
    assert not {"train_loss", "model"} & set(record.provenance)
    assert record.settings["method"]["prior"] == record.provenance["prior"]["name"] == "own"
    assert record.provenance["prior"]["trained_on"] == "unknown"
    assert len(record.provenance["prior"]["weights"]) == 16


@pytest.mark.gpu
def test_an_experiment_on_the_gpu_resumes_as_on_the_cpu(tmp_path: Path) -> None:
    workspace = replace(make_workspace(tmp_path), device=torch.device("cuda"))
    log: list[str] = []
    assert run([make_experiment(("block",))], SMALL, workspace, log=log.append)
    assert run([make_experiment(("block", "dust"))], SMALL, workspace, log=log.append)
    assert sum("trained:" in line for line in log) == 1
    assert "12 of 12 cells recorded." in log[-1]
