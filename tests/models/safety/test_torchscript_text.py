"""Texts that a source joins are added up, and nothing else counts."""

import ast

import pytest

from recollect.models.refusals import Refused
from recollect.models.safety.torchscript_text import MOST, SHORTEST, check_texts, longest_text


def joined(lines: str, longest: int = 0, before: int = 0) -> int:
    body = "".join(f"  {line}\n" for line in lines.split("\n"))
    return check_texts(ast.parse(f"def f(x):\n{body}"), longest, before)


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ('y = torch.add("abc", "de")', 5),
        ('y = "abc"\nz = torch.format("{}{}", y, y)', 10),
        ('y = ("abc", 1)\nz = torch.add(y[0], annotate(str, y[0]))', 6),
        ('if torch.eq(torch.add("a", "b"), "c"):\n  pass', 2),
        ('y : str = "abc"\nz = torch.mean(torch.add(y, "d"))', 4),
        ("y = torch.add(self.name, x)", SHORTEST),
        ("y = torch.conv2d(x, self.weight)\nz = torch.add(y, x)", 0),
        ('y = torch.eq("abc", "abd")', 0),
    ],
)
def test_lengths_are_added_up(lines: str, length: int) -> None:
    assert joined(lines) == length
    assert joined(lines, before=100) == length + 100


def test_fields_count_as_the_longest_text() -> None:
    assert longest_text(ast.parse('a = "abc"\nb = ["abcdef", 1]')) == 6
    assert joined("y = torch.add(self.name, CONSTANTS.c0)", longest=1000) == 2000


def test_too_much_is_refused() -> None:
    for before, lines in ((0, "\n".join(['y = "ab"'] + ["y = torch.add(y, y)"] * 26)), (MOST, 'y = torch.str("a")')):
        with pytest.raises(Refused, match="joins more than"):
            joined(lines, before=before)
