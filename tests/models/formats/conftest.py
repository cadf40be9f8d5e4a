"""A module of the user's own in the working folder."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CODE = """
import torch
from tests.models.making import Tiny, tiny
ready = tiny()
number = 3
def half(): return tiny().half()
def plain(): return lambda x: x / 2
def needy(size): return size
def broken(): raise KeyError("no such setting")
def nothing(): return 5
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with own_code.py in it, which is the working folder."""
    (tmp_path / "own_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    yield tmp_path
    sys.modules.pop("own_code", None)
