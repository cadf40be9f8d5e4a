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

| a table | of two \\| cells |
|---|---|

- An item.
- Another item.

    an indented example is code

```python
so = "is this"
```
"""


def test_sentences_leave_out_code_and_headings() -> None:
    assert list(prose.sentences(PAGE)) == [
        "a table",
        r"of two \| cells",
        "Two sentences.",
        "The second one has code and a link in it and goes on in another line.",
        "- An item.",
        "- Another item.",
    ]


def test_a_sentence_of_26_words_is_named() -> None:
    (found,) = prose.long_sentences(f"{'word ' * 25}end. {'word ' * 24}end.\n")
    assert found.startswith("26 words: word")
    (found,) = prose.long_sentences(f"| short | {'word ' * 25}end |\n|---|---|\n")
    assert found.startswith("26 words: word")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Images come back from it.", ["'come back': write recover"]),
        ("It gave its training images back.", ["'gave its training images back': write recover"]),
        ("It says so in a word.", ["'in a word': write message, sentence"]),
        ("Numbers on record.", ["'on record': write recorded, saved"]),
        ("| a cell | has it on record |", ["'on record': write recorded, saved"]),
        ("It is trained with Muon, in place of `by Muon`.", []),
    ],
)
def test_banned_words_are_named(text: str, found: list[str]) -> None:
    assert prose.banned_words(text) == found


def test_docstrings_are_read_without_their_lists_of_arguments() -> None:
    source = '"""A module."""\ndef f(x):\n    """Do it.\n\n    Args:\n        x: On record.\n    """\n    return 1\n'
    assert prose.docstrings(source).split() == ["A", "module.", "Do", "it."]


def test_comments_are_read_and_code_is_not() -> None:
    source = "look = '# text'  # One.\n# Two.\n"
    assert prose.comments(source).split() == ["One.", "Two."]


def test_notebooks_are_read_without_their_code() -> None:
    source = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nlook = 1\n\n# %% [markdown]\n# More.\n"
    assert prose.notebook_prose(source).split() == ["#", "Title", "Text.", "More."]


def test_pages_beyond_their_limits_are_named() -> None:
    user = dict.fromkeys(prose.LIMITS, "word | --- ") | {"README.md": "word " * (prose.ALL_USER_PAGES + 1)}
    found = prose.long_pages(user, {"docs/research/a.md": "word " * 1_501})
    total = prose.ALL_USER_PAGES + len(user)
    assert found == [
        f"README.md: {prose.ALL_USER_PAGES + 1} words of 700",
        "docs/research/a.md: 1501 words of 1500",
        f"user pages: {total} words of {prose.ALL_USER_PAGES}",
    ]


def test_a_notebook_with_much_prose_is_named_and_counts_to_no_total() -> None:
    assert prose.long_notebooks({"a": "word " * 301, "b": "word " * 300}) == ["a: 301 words of 300"]
    assert not set(prose.read(*prose.USER_PAGES)) & set(prose.read(prose.NOTEBOOKS))


def test_the_readme_is_short_as_wc_counts_too() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= prose.LIMITS["README.md"]


def test_the_pages_follow_the_rules() -> None:
    assert prose.problems() == []
