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
    "plain-recipe": "| U-Net Softplus, plain recipe | adam | 1.0e-08 | 25 / 50 / 100 / 100 |",
    "skip-connections": "| U-Net PReLU, skip connections | muon | 1.0e-08 | 25 / 50 / 100 / 100 |",
    "deep": "| FC-20 PReLU | adam | 1.0e-08 | 25 / 50 / 100 / 100 / 100 / 50 |",
    "larger-samples": "| FC-20 LReLU | muon | blind, gamma 1 | 1.0e-04 | 75 (30 to 95) |",
    "more-unseen": "| U-Net LReLU | muon | blind, unseen images | 1.0e-08 | 50 (15 to 85) |",
    "untuned-masks": "| network | optimizer | train loss | checker | right | corner | disc | diagonal | grid |",
    "scaling": "| 600 | 2048 | 75 (75 to 75) | 75 (75 to 75) |",
    "defences": "| weight decay | 10 | 1.0e-08 | 1.0e-02 | 100 | 100 |",
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


def test_a_loss_that_was_not_reached_has_no_share_in_the_scaling(tmp_path: Path) -> None:
    experiment, workspace = EXPERIMENTS["scaling"], records_alone(tmp_path)
    cells = [cell for cell in experiment.cells(ONE_MASK) if cell.fit.images.count == 100]
    best = [replace(cell, loss=None) if cell.is_at_last_loss else cell for cell in cells]
    add_records(workspace.store, best, ERRORS)
    row = next(line for line in table_of(experiment, ONE_MASK, workspace).splitlines() if line.startswith("| 100 "))
    assert row.endswith("| 75 (75 to 75) | - |")
