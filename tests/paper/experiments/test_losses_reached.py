from pathlib import Path

from recollect.paper.experiments import (
    accurate,
    losses_reached,
)
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_the_seconds_of_each_part_are_added_up(tmp_path: Path) -> None:
    cells = [c for c in accurate.cells(SMALL) if c.mask == "dust" and c.loss == 1e-8]
    add_records(records_alone(tmp_path).store, cells, ERRORS)
    text = losses_reached.table(SMALL, records_alone(tmp_path).store)
    assert "| fc10-prelu-adam-photos24 | invented |  | 8 | 8 s |" in text  # six methods, and two by another gamma
    assert "| ddnm on photos6 | invented |  | 1 | 1 s |" in text  # one for all networks
    own = {cell.key for cell in cells}
    assert f"| all | invented | 0 s | {len(own)} | {len(own)} s |" in text
