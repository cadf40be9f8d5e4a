"""The prose check finds what it is for, and the pages pass it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = spec_from_file_location("prose", ROOT / "docs" / "prose.py")
assert spec
assert spec.loader
prose = module_from_spec(spec)
spec.loader.exec_module(prose)

PAGE = """# A heading that is not a sentence at all

Two sentences. The second one has `some code with many words in it` and [a link](to/a/page.md) in it
and goes on in another line.

| a table | is no prose |
|---|---|

- An item.
- Another item.

    an indented example is code

```python
so = "is this"
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    return tmp_path / "page.md"


def test_sentences_leave_out_code_tables_and_headings() -> None:
    assert list(prose.sentences(PAGE)) == [
        "Two sentences.",
        "The second one has code and a link in it and goes on in another line.",
        "- An item.",
        "- Another item.",
    ]


def test_a_sentence_of_26_words_is_named(page: Path) -> None:
    page.write_text(f"{'word ' * 25}end. {'word ' * 24}end.\n")
    (found,) = prose.long_sentences(page)
    assert found.startswith("page.md: 26 words: word")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Images come back from it.", ["page.md: 'come back': write recover"]),
        ("Numbers on record.", ["page.md: 'on record': write recorded, saved"]),
        ("It is trained with Muon, in place of `by Muon`.", []),
    ],
)
def test_banned_words_are_named(page: Path, text: str, found: list[str]) -> None:
    page.write_text(text)
    assert prose.banned_words(page) == found


def test_a_page_beyond_its_limit_is_named(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (page.parent / "README.md").write_text("word " * 12_001)
    assert prose.long_pages() == ["README.md: 12001 words of 700", "user pages: 12001 words of 12000"]


def test_the_pages_follow_the_rules() -> None:
    assert prose.problems() == []
