import csv
import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from recollect.training.curve import draw_curve, write_curve
from recollect.training.monitor import Point

HISTORY = [Point(i / 10, 50 * i, 0.05 / i, 0.04 / i, 1e-3) for i in range(1, 40)]


def test_the_table_gives_every_number_back(tmp_path: Path) -> None:
    write_curve(tmp_path, HISTORY)
    with (tmp_path / "loss.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["seconds", "steps", "loss", "averaged", "rate"]
    read = [
        Point(float(r["seconds"]), int(r["steps"]), float(r["loss"]), float(r["averaged"]), float(r["rate"]))
        for r in rows
    ]
    assert read == HISTORY


def test_a_longer_table_replaces_a_shorter_one(tmp_path: Path) -> None:
    write_curve(tmp_path, HISTORY[:3])
    write_curve(tmp_path, HISTORY)
    assert len((tmp_path / "loss.csv").read_text().splitlines()) == len(HISTORY) + 1
    assert [p.name for p in tmp_path.iterdir()] == ["loss.csv"]


def test_the_drawing_is_svg_and_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = draw_curve(tmp_path, [*HISTORY, Point(5.0, 2000, math.nan, 0.0, 1e-3)], [1e-2, 1e-3])
    assert path == tmp_path / "loss.svg"
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert path.stat().st_size < 100_000


def test_too_little_to_draw(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert draw_curve(tmp_path, HISTORY[:1]) is None
    assert draw_curve(tmp_path, [Point(1.0, i, math.nan, math.nan, 1.0) for i in (1, 2, 3)]) is None
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_there_is_no_drawing_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw_curve(tmp_path, HISTORY) is None
