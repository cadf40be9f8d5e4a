import re
from pathlib import Path

import pytest

from recollect import InputError
from recollect.cli.paper import PAGES
from recollect.paper.render.document import NOTHING, fill_tables, page_tables, update_page
from tests.committed import committed_records

ROOT = Path(__file__).parents[3]
PAGE = "before\n<!-- table small-a -->\nold\n<!-- end -->\nbetween\n<!-- table full-a -->\n<!-- end -->\n"


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    return page_tables(ROOT / "results" / "paper")


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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_what_the_committed_records_say(path: Path, tables: dict[str, str]) -> None:
    page = (ROOT / path).read_text()
    assert set(re.findall(r"<!-- table (\S+) -->", page)) <= set(tables)
    assert fill_tables(page, tables) == page, "run: recollect paper figure all"


def test_the_tables_beside_the_records_are_what_these_say(tables: dict[str, str]) -> None:
    """Those of the full scale: the numbers of the small one say nothing about the paper, and are not kept."""
    written = {f"full-{path.stem}": path.read_text() for path in (ROOT / "results/paper/full/tables").glob("*")}
    full = {name: text for name, text in tables.items() if text and name.startswith("full-")}
    assert len(written) > 7
    assert written == {name: text for name, text in full.items() if not name.endswith("summary")}


def test_what_holds_on_the_page_holds_in_the_records() -> None:
    records = committed_records("full")
    unseen = [record for record in records if record.cell["set"] == "control"]
    generic = [record for record in records if record.cell["method"] == "ddnm"]
    assert len(unseen) > 100
    assert len(generic) > 10
    assert all(record.score.accurate.count == 0 for record in unseen + generic)
    at = {
        method: [r.score.approximate.value for r in records if (r.cell["method"], r.cell["set"]) == (method, "train")]
        for method in ("blind", "iterate")
    }
    means = {method: sum(values) / len(values) for method, values in at.items()}
    assert means["blind"] > 2 * means["iterate"]
