from dataclasses import replace
from pathlib import Path

import pytest

from recollect.paper.experiments import (
    accurate,
)
from recollect.paper.render.figures import table_of
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_the_rates_in_a_table_are_those_of_the_records(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, accurate.EXPERIMENT.cells(SMALL), ERRORS)
    text = table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))
    assert "| FC-10 LReLU | adam | 1.0e-08 | 25 / 50 / 100 / 100 / 100 / 50 |" in text
    assert "| paper | not said | 1e-08 | its mask 6 | 78 | 4 | 0 | not in it | not in it |" in text
    rates = "50 (15 to 85) | 25 (5 to 70) | 0 (0 to 49) | 50 (15 to 85) | 0 (0 to 49)"
    assert f"| U-Net Softplus | muon | 1.0e-08 | dust | {rates} |" in text
    assert "Blind recovers more images than iterating in 300 of 300 cells, as many in 0, fewer in 0." in text


def test_if_the_last_loss_was_not_reached_the_best_weights_are_compared(tmp_path: Path) -> None:
    cells = [c for c in accurate.EXPERIMENT.cells(SMALL) if c.fit.name.startswith("unet-softplus-adam")]
    last = [c for c in cells if c.loss == c.fit.milestones[-1] and c.mask == "dust" and c.gamma is None]
    add_records(records_alone(tmp_path).store, [replace(c, loss=None) for c in last], ERRORS | {"iterate": [1e-9] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))
    assert "iterating in 0 of 1 cells, as many in 0, fewer in 1: unet-softplus-adam-photos6 best dust." in text


def test_a_cell_where_blind_recovers_fewer_is_named(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, accurate.EXPERIMENT.cells(SMALL)[:3], ERRORS | {"iterate": [1e-9] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))
    assert "in 0 of 1 cells, as many in 0, fewer in 1: fc10-lrelu-adam-photos24 1e-08 block." in text


@pytest.mark.parametrize(("errors", "words"), [(1e-9, "as many in 1,"), (1.0, "as many in 1 (1 of them none),")])
def test_cells_where_blind_and_iterating_are_equal_are_counted(errors: float, words: str, tmp_path: Path) -> None:
    same = {"iterate": [errors] * 4, "blind": [errors] * 4}
    add_records(records_alone(tmp_path).store, accurate.EXPERIMENT.cells(SMALL)[:3], ERRORS | same)
    assert f"in 0 of 1 cells, {words} fewer in 0." in table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))


def test_cells_with_another_gamma_have_a_table_of_their_own(tmp_path: Path) -> None:
    results = records_alone(tmp_path).store
    of_paper = [c for c in accurate.cells(SMALL) if c.gamma is None]
    add_records(results, of_paper, ERRORS)
    assert "with a gamma of" not in table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))
    add_records(results, [c for c in accurate.cells(SMALL) if c.gamma], {"blind": [1e-9] * 4, "known": [1e-1] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))
    rows = text.split("with a gamma of 0.5")[1].splitlines()[2:6]
    assert [row.split(" | ")[:2] for row in rows[2:]] == [["| FC-10 PReLU", "adam"], ["| FC-10 PReLU", "muon"]]
    assert all(row.count("100 / 0") == 6 for row in rows[2:])
