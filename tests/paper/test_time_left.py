from dataclasses import replace
from pathlib import Path

from recollect.paper.cells import Cell
from recollect.paper.store import Store
from recollect.paper.time_left import SecondsOfCells, time_left
from tests.paper.making import ERRORS, FIT, add_records

CELL = Cell(FIT, FIT.milestones[-1], "train", "block", "known")
OTHER_MASK = replace(CELL, mask="dust")
LARGER = replace(CELL, fit=replace(FIT, images=replace(FIT.images, name="made8", count=8)))
UNKNOWN = replace(CELL, method="blind")


def test_a_missing_cell_takes_as_long_as_its_like(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [CELL], ERRORS)  # a second for four images
    estimates = SecondsOfCells.of([CELL, OTHER_MASK], store)
    assert estimates.device == "invented"
    assert [estimates.of_cell(cell) for cell in (OTHER_MASK, LARGER, UNKNOWN)] == [1.0, 2.0, None]
    assert estimates.of_cell(replace(LARGER, attacked=2)) == 0.5


def test_what_is_left_is_said_in_minutes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [CELL], ERRORS)
    cells = [CELL, OTHER_MASK, LARGER, UNKNOWN]
    estimates = SecondsOfCells.of(cells, store)
    left = "3 cells (about 0.1 min on invented), 1 of methods without any record"
    assert time_left([FIT], cells, store, estimates) == f"missing: 0.5 min of training by the goals, {left}"
    store.add_training(FIT, {"training": FIT.name, "finished": True, "milestones": []})
    assert time_left([FIT], [CELL], store, estimates) == "nothing is missing"
