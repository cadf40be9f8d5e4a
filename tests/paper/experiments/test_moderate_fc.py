from pathlib import Path

from recollect.paper.experiments.moderate_fc import EXPERIMENT, PAPER
from recollect.paper.render.figures import table_of
from recollect.paper.scales import FULL
from tests.paper.making import ERRORS, add_records, records_alone


def test_the_papers_rates_stand_above_ours_under_no_mask_of_ours(tmp_path: Path) -> None:
    add_records(records_alone(tmp_path).store, EXPERIMENT.cells(FULL), ERRORS)
    text = table_of(EXPERIMENT, FULL, records_alone(tmp_path))
    above, ours = text.split("Here, under our masks:")
    for method, values in PAPER.items():
        assert f"| {method} | {', '.join(f'{value:g}' for value in values)} |" in above
    assert "block" not in above
    assert "block" in ours
    assert "75 (30 to 95)" in text  # blind below 5e-4
