import re
from collections import Counter
from pathlib import Path

import pytest

from recollect import InputError
from recollect.accelerate.tf32x3.tensor_cores import TensorCores
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.render.document import NOTHING, fill_tables, page_tables, update_page
from recollect.paper.scales import FULL
from recollect.paper.store import Store
from tests.committed import committed_records

ROOT = Path(__file__).parents[3]
PAGE = "before\n<!-- table small-a -->\nold\n<!-- end -->\nbetween\n<!-- table full-a -->\n<!-- end -->\n"


def test_tables_go_between_their_markers_and_prose_stays() -> None:
    once = fill_tables(PAGE, {"small-a": "| new |\n", "full-a": ""})
    assert once == (
        "before\n<!-- table small-a -->\n\n| new |\n\n<!-- end -->\nbetween\n"
        f"<!-- table full-a -->\n\n{NOTHING}\n<!-- end -->\n"
    )
    assert fill_tables(once, {"small-a": "| new |\n"}) == once


def test_a_page_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        update_page(tmp_path / "none.md", {})


def test_the_reproduction_page_is_what_the_committed_records_say() -> None:
    page = (ROOT / "docs" / "research" / "reproduction.md").read_text()
    tables = page_tables(ROOT / "results" / "paper")
    assert set(re.findall(r"<!-- table (\S+) -->", page)) <= set(tables)
    assert fill_tables(page, tables) == page, "run: recollect paper figure all"


def test_the_prose_counts_what_the_committed_records_hold() -> None:
    words = " ".join((ROOT / "docs" / "research" / "reproduction.md").read_text().split())
    full = Store(ROOT / "results" / "paper" / "full")
    records = [r for r in committed_records("full") if "H200" in r.provenance["device"]]
    minutes = (sum(t["seconds"] for t in full.trainings()) + sum(r.seconds for r in records)) / 60
    assert f"of training and recovery alone: {minutes:.0f} minutes on one H200" in words
    ways = Counter(r.provenance.get("products") for r in records)
    assert f"the {ways[TensorCores.description]} records of FC-10 trained with Muon" in words
    assert f"({ways['float32 as three TF32 products, in layers that allow it']} cells, whose records say so" in words
    planned = {cell.key: cell for experiment in EXPERIMENTS.values() for cell in experiment.cells(FULL)}
    missing = [cell for cell in planned.values() if full.is_missing(cell)]
    assert {cell.method for cell in missing} == {"blind", "refined"}
    assert f"The {len(missing)} cells of `blind` and `refined` are missing" in words
