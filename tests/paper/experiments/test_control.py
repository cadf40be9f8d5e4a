from pathlib import Path

from recollect.paper.experiments import (
    control,
)
from recollect.paper.render.figures import table_of
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_control_images_are_counted_over_all_masks(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, control.EXPERIMENT.cells(SMALL), ERRORS)
    text = table_of(control.EXPERIMENT, SMALL, records_alone(tmp_path))
    assert "| blind | 12 of 24 (50%) | 18 of 24 (75%) | 3 of 4 on block |" in text
    assert text.count("| none, on photos24 |  | biharmonic | 0 of 24 (0%) | 0 of 24 (0%) | none |") == 1
    assert "| FC-10 LReLU | adam | zero-rule |" in text
