from pathlib import Path

from recollect.paper.experiments import moderate_fc
from recollect.paper.scales import FULL
from recollect.paper.store import Store
from tests.benchmarks.running import benchmark
from tests.paper.making import add_records

paper_figure = benchmark("paper_figure")


def test_a_method_that_was_not_measured_under_every_mask_has_no_bar(tmp_path: Path) -> None:
    store = Store(tmp_path)
    own = [cell for cell in moderate_fc.cells(FULL) if cell.set == "train" and cell.gamma is None]
    own = [cell for cell in own if cell.fit == own[0].fit]
    blind, known = ([cell for cell in own if cell.method == method] for method in ("blind", "known"))
    add_records(store, [*blind, *known[1:]], {"blind": [1e-9, 1.0], "known": [1e-9]})
    assert paper_figure.rates(moderate_fc, store) == {"blind": [50.0, 50.0, 50.0]}
    texts = [text.get_text() for text in paper_figure.draw(store).axes[0].texts]
    assert texts.count("not\nmeasured") == 3
