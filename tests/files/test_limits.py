from pathlib import Path

import pytest

from recollect import pieces
from recollect.errors import InputError
from recollect.files import limits
from recollect.files.limits import IMAGES, Limit
from recollect.sources import open_source

LIMITS = [
    value for module in (limits, open_source, pieces) for value in vars(module).values() if isinstance(value, Limit)
]


def test_a_limit_is_raised_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"^Too many\. The limit is 2,000,000; .* RECOLLECT_MAX_IMAGES=NUMBER"):
        IMAGES.check(2_000_001, "Too many.")
    monkeypatch.setenv("RECOLLECT_MAX_IMAGES", "2000001")
    IMAGES.check(2_000_001, "Too many.")
    monkeypatch.setenv("RECOLLECT_MAX_IMAGES", "5")
    with pytest.raises(InputError, match="The limit is 5"):
        IMAGES.check(6, "Too many.")


@pytest.mark.parametrize("value", ["many", "-1", "1e9", "٣", "9" * 30])
def test_a_variable_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("RECOLLECT_MAX_IMAGES", value)
    with pytest.raises(InputError, match="RECOLLECT_MAX_IMAGES is a whole number"):
        IMAGES.check(1, "One.")


def test_names_differ() -> None:
    variables = [limit.variable for limit in LIMITS]
    assert len(set(variables)) == len(variables) > 8


def test_the_docs_list_every_limit_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `RECOLLECT_MAX_")]
    assert rows == [f"| `{limit.variable}` | {limit.default:,} | {limit.summary} |" for limit in LIMITS]
