from pathlib import Path

import pytest

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import moderate_fc, moderate_unet
from recollect.paper.render.figures import table_of
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


@pytest.mark.parametrize("experiment", [moderate_fc.EXPERIMENT, moderate_unet.EXPERIMENT])
def test_both_tables_compare_blind_with_iterating(experiment: Experiment, tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, experiment.cells(SMALL), ERRORS)
    assert "Blind recovers more images than iterating in" in table_of(experiment, SMALL, records_alone(tmp_path))
