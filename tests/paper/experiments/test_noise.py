from pathlib import Path

from recollect.paper.experiments.noise import EXPERIMENT, NOISE
from recollect.paper.render.figures import table_of
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_every_cell_has_the_papers_noise() -> None:
    assert {cell.settings["noise_std"] for cell in EXPERIMENT.cells(SMALL)} == {NOISE}


def test_the_table_compares_blind_with_iterating(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, EXPERIMENT.cells(SMALL), ERRORS)
    assert "Blind recovers more images than iterating in" in table_of(EXPERIMENT, SMALL, records_alone(tmp_path))
