"""Functions stay plain: radon counts their branches, those inside comprehensions too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from radon.complexity import cc_visit

import recollect

PACKAGE = Path(recollect.__file__).parent
ROOT = Path(__file__).parents[1]
FOLDERS = {"recollect": PACKAGE, "benchmarks": ROOT / "benchmarks", "docs": ROOT / "docs"}
HIGHEST = 10


def too_complex(code: str) -> Iterator[str]:
    """Name the functions and methods above the bound; a class is held to it by its methods."""
    for block in cc_visit(code):
        if block.letter != "C" and block.complexity > HIGHEST:
            yield f"line {block.lineno}: {block.fullname} has a complexity of {block.complexity}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_complex(folder: str) -> None:
    files = sorted(FOLDERS[folder].rglob("*.py"))
    assert files
    assert [f"{file}, {block}" for file in files for block in too_complex(file.read_text())] == []


def test_a_complex_function_is_named() -> None:
    branches = "".join(f"    if x == {i}:\n        return {i}\n" for i in range(HIGHEST))
    assert list(too_complex(f"def choose(x):\n{branches}")) == ["line 1: choose has a complexity of 11"]
    method = "".join(f"    {line}\n" for line in f"def choose(x):\n{branches}".splitlines())
    assert list(too_complex(f"class A:\n{method}")) == ["line 2: A.choose has a complexity of 11"]
