"""Experiments of our own: their tables and figures come from records, and a network is told by what is unusual."""

from dataclasses import replace
from pathlib import Path

import pytest

from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.render.figures import draw, table_of
from recollect.paper.scales import FULL
from tests.paper.making import ERRORS, add_records, records_alone

ONE_MASK = replace(FULL, masks=("dust",), table_masks=("dust",), trainings={})
ROWS = {
    "plain-recipe": "| U-Net Softplus, plain recipe | adam | 1.0e-08 | 25 / 50 / 100 / 100 / 50 |",
    "skip-connections": "| U-Net PReLU, skip connections | muon | 1.0e-08 | 25 / 50 / 100 / 100 / 50 |",
    "deep": "| FC-20 PReLU | adam | 1.0e-08 | 25 / 50 / 100 / 100 / 100 / 50 |",
    "larger-samples": "| FC-20 LReLU | muon | refined, gamma 1 | 1.0e-04 | 100 (51 to 100) |",
    "more-unseen": "| U-Net LReLU | muon | blind, unseen images | 1.0e-08 | 50 (15 to 85) |",
    "untuned-masks": "| network | optimizer | train loss | checker | right | corner | disc | diagonal | grid |",
    "scaling": "| 400 | 2048 | 75 (75 to 75) | 75 (75 to 75) |",
    "defences": "| weight decay | 10 | 1.0e-08 | 1.0e-02 | 100 | 100 (100 to 100) | 4 of 4 |",
}


@pytest.mark.parametrize("name", ROWS)
def test_a_table_is_made_of_records(name: str, tmp_path: Path) -> None:
    experiment, workspace = EXPERIMENTS[name], records_alone(tmp_path)
    assert table_of(experiment, ONE_MASK, workspace) == ""
    add_records(workspace.store, experiment.cells(ONE_MASK), ERRORS)
    assert ROWS[name] in table_of(experiment, ONE_MASK, workspace)
    assert not experiment.is_of_paper


@pytest.mark.parametrize("name", ["scaling", "defences"])
def test_a_figure_is_drawn_from_records(name: str, tmp_path: Path) -> None:
    experiment, workspace = EXPERIMENTS[name], records_alone(tmp_path)
    add_records(workspace.store, experiment.cells(ONE_MASK), ERRORS)
    drawn = draw([experiment], ONE_MASK, workspace, lambda _: None)
    assert {path.name for path in drawn} == {f"{name}.svg", f"{name}.md"}


def test_new_networks_under_new_masks_stand_before_the_usual_ones(tmp_path: Path) -> None:
    experiment, workspace = EXPERIMENTS["untuned-masks"], records_alone(tmp_path)
    add_records(workspace.store, experiment.cells(ONE_MASK), ERRORS)
    new, usual = table_of(experiment, ONE_MASK, workspace).split("The usual networks")
    assert new.count("| FC-10 LReLU, width 768 | adam |") == new.count("| U-Net Softplus, width 48 | muon |") == 2
    assert "width" not in usual
    widths = {fit.kind: fit.network((3, 16, 16)).settings for fit in {cell.fit for cell in experiment.cells(FULL)}
              if fit.changes}  # fmt: skip
    assert widths["fc10"]["width"] == 768
    assert list(widths["unet"]["widths"]) == [48, 96, 192, 384]


@pytest.mark.parametrize("name", sorted({"more-unseen", "untuned-masks", "plain-recipe", "skip-connections", "deep"}))
def test_references_stand_beside_the_methods(name: str) -> None:
    cells = EXPERIMENTS[name].cells(FULL)
    assert {"zero-rule", "ddnm", "biharmonic"} <= {cell.method for cell in cells}


@pytest.mark.parametrize("name", ["scaling", "defences"])
def test_references_and_unseen_images_stand_beside_the_attack(name: str) -> None:
    cells = EXPERIMENTS[name].cells(FULL)
    assert {"zero-rule", "biharmonic"} < {cell.method for cell in cells}
    assert {cell.fit for cell in cells if cell.set == "control"} == {cell.fit for cell in cells}


def test_a_loss_that_was_not_reached_has_no_share_in_the_scaling(tmp_path: Path) -> None:
    experiment, workspace = EXPERIMENTS["scaling"], records_alone(tmp_path)
    cells = [cell for cell in experiment.cells(ONE_MASK) if cell.fit.images.count == 100]
    best = [replace(cell, loss=None) if cell.is_at_last_loss else cell for cell in cells]
    add_records(workspace.store, best, ERRORS)
    row = next(line for line in table_of(experiment, ONE_MASK, workspace).splitlines() if line.startswith("| 100 "))
    assert "| 75 (75 to 75) | - | 50 |" in row


def test_a_share_over_several_trainings_has_a_range(tmp_path: Path) -> None:
    workspace, twice = records_alone(tmp_path), replace(ONE_MASK, trainings={"defences": 2})
    cells = EXPERIMENTS["defences"].cells(twice)
    add_records(workspace.store, [cell for cell in cells if cell.fit.seed == 42], ERRORS)
    add_records(workspace.store, [cell for cell in cells if cell.fit.seed == 43], ERRORS | {"refined": [1e-1] * 4})
    text = table_of(EXPERIMENTS["defences"], twice, workspace)
    assert "| dropout | 0.3 | 1.0e-08 | 1.0e-02 | 50 | 50 (0 to 100) | 4 of 8 |" in text
    assert "| early stopping | 1e-05 | 1.0e-05 | 1.0e-02 | 50 | 50 (0 to 100) | 4 of 8 |" in text
    assert "| early stopping | 1e-08 | 1.0e-08 | 1.0e-02 | 50 | 50 (0 to 100) | 4 of 8 |" in text
    assert "| zero-rule |  |  |  |  | 50 |  |" in text
