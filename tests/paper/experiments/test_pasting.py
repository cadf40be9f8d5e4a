from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.paper.cells import Cell
from recollect.paper.experiments.pasting import EXPERIMENT, answers, cells
from recollect.paper.render.figures import draw, table_of
from recollect.paper.scales import SMALL
from recollect.paper.store import Store
from recollect.records import Record
from tests.paper.making import records_alone

ONE_MASK = replace(SMALL, masks=("dust",), table_masks=("dust",))
# Of four images: the method's own answer, and the other one.
OWN = {"blind": [1e-9, 1e-1, 1e-1, 1e-1], "known": [1e-9, 1e-9, 1e-9, 1e-9]}
OTHER: dict[str, dict[str, Any]] = {
    "blind": {"mse_pasted": [1e-9, 1e-9, 1e-9, 1e-1]},
    "known": {"mse_unpasted": [1e-9, 1e-9, 1e-1, 1e-1]},
}


def add(store: Store, cell: Cell, both: bool = True) -> None:
    provenance = {"train_loss": cell.loss, "device": "invented"}
    record = Record(
        cell.identity, cell.settings, [], OWN[cell.method], [1] * 4, [40] * 4, ["done"] * 4, provenance=provenance
    )
    other: dict[str, Any] = OTHER[cell.method] if both else {}
    store.add(replace(record, **other))


def test_each_method_is_shown_with_and_without_pasting(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    for cell in cells(ONE_MASK):
        add(workspace.store, cell)
    text = table_of(EXPERIMENT, ONE_MASK, workspace)
    assert "Accurate recovery in percent, blind / blind, pasted / known, not pasted / known:" in text
    assert text.count("| FC-10 LReLU, 24 images | adam | 25 / 75 / 50 / 100 |") == 2
    assert "| FC-10 PReLU, 24 images, gamma 0.5 | adam | 25 / 75 / 50 / 100 |" in text
    assert "| FC-20 LReLU, 60 images | muon | 25 / 75 / 50 / 100 |" in text
    names = [path.name for path in draw([EXPERIMENT], ONE_MASK, workspace, lambda _: None)]
    assert names == ["pasting.svg", "pasting.md"]


def test_records_without_the_other_answer_are_not_shown(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    for cell in cells(ONE_MASK):
        add(workspace.store, cell, both=False)
    assert answers(ONE_MASK, workspace.store) == {}
    assert not draw([EXPERIMENT], ONE_MASK, workspace, lambda _: None)


def test_no_cell_is_measured_for_this_table_alone() -> None:
    assert {cell.paste for cell in cells(SMALL)} == {None}
