from hypothesis import given
from hypothesis import strategies as st

from recollect.visible import visible


def test_what_steers_a_terminal_is_written_as_an_escape() -> None:
    assert visible("\x1b[31mred\x07") == r"\x1b[31mred\x07"
    assert visible("a\u202eb\u200bc\x9b") == r"a\u202eb\u200bc\x9b"  # turned around, unseen, an escape of one byte
    assert visible("caf\udce9.png") == r"caf\udce9.png"  # a name that is not UTF-8
    assert visible("a\r\x00") == r"a\r\x00"


def test_plain_text_stays() -> None:
    text = "Überall 図 4\u202f096 a'b\n\tc"
    assert visible(text) == text


@given(st.text())
def test_nothing_else_is_left_and_it_can_be_written(text: str) -> None:
    shown = visible(text)
    assert all(line.replace("\t", "").replace("\u202f", "").isprintable() for line in shown.split("\n"))
    shown.encode()
