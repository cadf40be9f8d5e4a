from pathlib import Path

import pytest

from recollect import InputError
from recollect.paper.commands import page_tables
from recollect.paper.document import NOTHING, fill, filled, names_in

ROOT = Path(__file__).parents[2]
PAGE = "before\n<!-- table small-a -->\nold\n<!-- end -->\nbetween\n<!-- table full-a -->\n<!-- end -->\n"


def test_tables_take_their_places_and_prose_stays() -> None:
    once = filled(PAGE, {"small-a": "| new |\n", "full-a": ""})
    assert once == (
        "before\n<!-- table small-a -->\n\n| new |\n\n<!-- end -->\nbetween\n"
        f"<!-- table full-a -->\n\n{NOTHING}\n<!-- end -->\n"
    )
    assert filled(once, {"small-a": "| new |\n"}) == once
    assert names_in(once) == ["small-a", "full-a"]


def test_a_page_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        fill(tmp_path / "none.md", {})


def test_the_reproduction_page_is_what_the_committed_records_say() -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text()
    tables = page_tables(ROOT / "results" / "paper")
    assert set(names_in(page)) <= set(tables)
    assert filled(page, tables) == page, "run: recollect paper figure all"
