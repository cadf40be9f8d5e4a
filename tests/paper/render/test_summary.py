from pathlib import Path

from recollect.paper.experiments import moderate_unet
from recollect.paper.render.summary import at_the_papers_gamma, shares, summary
from recollect.paper.scales import FULL
from recollect.paper.store import Store

ROOT = Path(__file__).parents[3]


def test_the_summary_sets_the_papers_numbers_beside_ours(tmp_path: Path) -> None:
    assert summary(FULL, Store(tmp_path)) == ""
    lines = summary(FULL, Store(ROOT / "results" / "paper" / "full")).splitlines()
    assert {line.split(" | ")[0] for line in lines[2:-2]} == {"| Table 1", "| Table 2", "| Figure 3"}
    assert lines[-1].endswith("minutes on one H200.")


def test_shares_are_those_of_one_method_by_mask() -> None:
    cells = at_the_papers_gamma(moderate_unet.cells(FULL))
    assert {cell.set for cell in cells} == {"train"}
    own = [cell for cell in cells if cell.fit == cells[0].fit]
    found = shares(own, Store(ROOT / "results" / "paper" / "full"), "blind")
    assert len(found) == len(FULL.table_masks)
    assert all(0 <= float(share) <= 100 for share in found)
