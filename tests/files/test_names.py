import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.files.names import printable
from tests.file_names import original_name


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"cat.png", "cat.png"),
        ("größe/猫.png".encode(), "größe/猫.png"),
        (b"a\xffb.png", r"a\xffb.png"),
        (b"latin1-\xe4.png", r"latin1-\xe4.png"),
        (rb"a\xffb.png", r"a\\xffb.png"),
        (rb"C:\pictures", r"C:\pictures"),
        (b"red\x1b[31m\n.png", r"red\x1b[31m\x0a.png"),
        ("c1\x9b.png".encode(), r"c1\xc2\x9b.png"),
    ],
)
def test_a_name_is_written_so_that_people_can_read_it(content: bytes, text: str) -> None:
    assert printable(os.fsdecode(content)) == text
    assert os.fsencode(original_name(text)) == content


@given(st.binary(max_size=12) | st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")))
def test_every_name_comes_back_and_can_be_written(content: bytes) -> None:
    name = os.fsdecode(content)
    text = printable(name)
    text.encode()
    assert text.isprintable() or not any(character < " " or "\x7f" <= character <= "\x9f" for character in text)
    assert os.fsencode(original_name(text)) == content


@given(st.lists(st.text(alphabet="\\x0f1a\udcff\udc0a", max_size=6), unique=True))
def test_different_names_stay_different(names: list[str]) -> None:
    assert len({printable(name) for name in names if _is_name(name)}) == len([n for n in names if _is_name(n)])


def _is_name(text: str) -> bool:
    """Whether Python can have read this from a folder: surrogates stand for bytes of 128 and more."""
    try:
        return os.fsdecode(os.fsencode(text)) == text
    except UnicodeEncodeError:
        return False
