from pathlib import Path

from recollect.paper.experiments.moderate_unet import EXPERIMENT, PAPER
from recollect.paper.render.figures import table_of
from recollect.paper.scales import FULL
from tests.paper.making import ERRORS, add_records, records_alone


def test_the_papers_rows_are_above_ours(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, EXPERIMENT.cells(FULL), ERRORS)
    text = table_of(EXPERIMENT, FULL, records_alone(tmp_path))
    for method, values in PAPER.items():
        assert f"| paper |  | {method} |  | {' | '.join(f'{v:g}' for v in values)} |" in text
    assert "75 (30 to 95)" in text  # blind below 5e-4
