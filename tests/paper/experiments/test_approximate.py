from pathlib import Path

from recollect.paper.experiments.approximate import EXPERIMENT, table
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_rates_are_of_the_looser_threshold(tmp_path: Path) -> None:
    """Of four images iterating recovers two approximately, one of them accurately; blind three."""
    store = records_alone(tmp_path).store
    add_records(store, [c for c in EXPERIMENT.cells(SMALL) if c.fit.name.startswith("fc10-lrelu-adam")], ERRORS)
    assert "| FC-10 LReLU | adam | 1.0e-08 | 50 / 75 / 100 / 100 / 100 / 50 |" in table(SMALL, store)
