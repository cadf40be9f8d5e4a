from dataclasses import replace
from pathlib import Path

from recollect.paper.experiments.cycles import EXPERIMENT, cells
from recollect.paper.render.figures import table_of
from recollect.paper.scales import SMALL
from recollect.records import Record
from tests.paper.making import add_records, records_alone

ONE_MASK = replace(SMALL, masks=("dust",), table_masks=("dust",))


def test_cycles_are_counted_with_their_length_and_the_range_of_their_errors(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    cell = next(cell for cell in cells(ONE_MASK) if cell.fit.kind == "fc20")
    cycles = [[0, 2, 4e-4, 6e-4], [1, 5, 1e-3, 2e-3], [3, 2, 1e-4, 1e-4]]
    workspace.store.add(
        Record(cell.identity, cell.settings, [], [1e-4] * 4, [9] * 4, [360] * 4, ["cycle"] * 4, cycles=cycles)
    )
    assert "| FC-20 LReLU, 60 images | muon | 4 | 3 (75%) | 2, 5 | 2 | 1 |" in table_of(EXPERIMENT, ONE_MASK, workspace)


def test_records_that_did_not_follow_cycles_are_not_shown(tmp_path: Path) -> None:
    workspace = records_alone(tmp_path)
    add_records(workspace.store, cells(ONE_MASK), {"blind": [1e-9] * 4})
    assert table_of(EXPERIMENT, ONE_MASK, workspace) == ""
