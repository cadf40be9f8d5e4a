from pathlib import Path

from recollect.paper.experiments import (
    thresholds,
)
from recollect.paper.scales import FULL
from tests.paper.making import ERRORS, add_records, records_alone


def test_thresholds_have_a_panel_for_each_network_and_none_for_the_generic_method_alone(tmp_path: Path) -> None:
    results, cells = records_alone(tmp_path).store, thresholds.EXPERIMENT.cells(FULL)
    add_records(results, [c for c in cells if c.method == "ddnm"], ERRORS)
    assert not thresholds.EXPERIMENT.figures(FULL, results)
    add_records(results, [c for c in cells if c.fit.activation == "softplus"], ERRORS)
    (figure,) = thresholds.EXPERIMENT.figures(FULL, results).values()
    assert [panel.get_title() for panel in figure.axes] == ["Softplus, Muon", "Softplus, Adam"]
    assert [len(panel.lines) for panel in figure.axes] == [8, 8]
