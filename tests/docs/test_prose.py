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


def test_sentences_leave_out_code_tables_and_headings() -> None:
    assert list(prose.sentences(PAGE)) == [
        "Two sentences.",
        "The second one has code and a link in it and goes on in another line.",
        "- An item.",
        "- Another item.",
    ]


def test_a_sentence_of_26_words_is_named() -> None:
    (found,) = prose.long_sentences(f"{'word ' * 25}end. {'word ' * 24}end.\n")
    assert found.startswith("26 words: word")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Images come back from it.", ["'come back': write recover"]),
        ("Numbers on record.", ["'on record': write recorded, saved"]),
        ("It is trained with Muon, in place of `by Muon`.", []),
    ],
)
def test_banned_words_are_named(text: str, found: list[str]) -> None:
    assert prose.banned_words(text) == found


def test_pages_beyond_their_limits_are_named() -> None:
    user = dict.fromkeys(prose.LIMITS, "word | --- ") | {"README.md": "word " * 12_001}
    found = prose.long_pages(user, {"docs/research/a.md": "word " * 1_501})
    total = 12_001 + len(user) - 1
    assert found == [
        "README.md: 12001 words of 700",
        "docs/research/a.md: 1501 words of 1500",
        f"user pages: {total} words of 12000",
    ]


def test_the_pages_follow_the_rules() -> None:
    assert prose.problems() == []
