import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from recollect.cli.data import app
from recollect.errors import InputError
from recollect.sources import reproduce
from recollect.sources.base import SOURCES, Archive


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def output(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def mistake(*arguments: str) -> str:
    """What the root command is given to print."""
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    return str(error)


@pytest.fixture
def array(tmp_path: Path) -> str:
    values = np.random.default_rng(0).integers(0, 256, (12, 3, 8, 8), dtype=np.uint8)
    values[5] = values[4]
    np.save(tmp_path / "a.npy", values)
    return str(tmp_path / "a.npy")


def test_list_tells_of_every_source_and_where_downloads_are(tmp_path: Path) -> None:
    text = output("list", "--cache", str(tmp_path))
    for name in ("photos", "cifar10", "svhn", "tiny-imagenet", "folder", "array"):
        assert f"\n{name} " in f"\n{text}"
    assert "recollect data fetch cifar10  (170 MB)" in text
    assert str(tmp_path) in text
    (tmp_path / "cifar-10-python.tar.gz").touch()
    assert "fetch cifar10" not in output("list", "--cache", str(tmp_path))


def test_show_tells_what_a_spelling_stands_for(array: str) -> None:
    text = output("show", f"{array}?count=6&seed=1")
    assert "6 images of 8x8, 3 channels" in text
    assert f"array:{array}?count=6&seed=1&part=train" in text
    assert "sha256  " in text


def test_show_tells_signals_and_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((5, 2, 40)))
    assert "5 signals of 40 values, 2 channels" in output("show", str(tmp_path / "a.npy"))
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((5, 7)))
    assert "5 rows of 7 columns" in output("show", str(tmp_path / "a.npy"))


def test_skipped_files_are_told_in_one_sentence(tmp_path: Path) -> None:
    Image.new("L", (4, 4), 9).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    result = run("show", f"folder:{tmp_path}?bad=skip")
    assert result.exit_code == 0
    assert "1 image of 4x4, 1 channel\n" in result.stdout
    assert result.stderr.startswith("Left out 1 of 2 files")
    assert "Warning" not in result.stderr


def test_split_reports_duplicates_and_writes_a_record_to_reproduce(array: str, tmp_path: Path) -> None:
    text = output("split", f"{array}?count=6", "--out", str(tmp_path / "split.json"))
    assert "1 have an exact" in text
    assert "is like" in text
    record = json.loads((tmp_path / "split.json").read_text())
    again = reproduce(record)
    assert sorted(map(int, again.train.ids + again.control.ids)) == list(range(12))
    duplicates = record["duplicates"]
    assert {frozenset(pair[:2]) for pair in duplicates["across"] + duplicates["inside"]} <= {frozenset({"4", "5"})}


def test_split_takes_a_control_set_of_its_own(array: str) -> None:
    assert "control  2 images" in output("split", f"{array}?count=6", f"{array}?count=2&part=control")


def test_mistakes_reach_the_root_command_as_sentences(array: str, tmp_path: Path) -> None:
    assert "There is no source 'mnist'" in mistake("show", "mnist")
    assert "6 at most" in mistake("split", f"{array}?count=7")
    assert "nothing to fetch for 'photos'" in mistake("fetch", "cifar10", "photos", "--cache", str(tmp_path))
    assert "cannot be written" in mistake("split", f"{array}?count=2", "--out", str(tmp_path / "no" / "x.json"))
    assert "x.txt is not called .json" in mistake("split", f"{array}?count=2", "--out", str(tmp_path / "x.txt"))


def test_fetch_keeps_what_is_there_and_says_how_to_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.bin").write_bytes(b"content")
    here = Archive("http://127.0.0.1:9/x.bin", hashlib.md5(b"content").hexdigest(), "x.bin", 1)
    monkeypatch.setattr(
        "recollect.sources.download.SOURCES", {"cifar10": replace(SOURCES["cifar10"], archives=(here,))}
    )
    text = output("fetch", "cifar10", "--cache", str(tmp_path))
    assert text == f"cifar10: {tmp_path}/x.bin\nUse it as cifar10:{tmp_path}\n"


def test_help_tells_a_newcomer_what_there_is() -> None:
    text = output("--help")
    for command in ("list", "fetch", "show", "split"):
        assert command in text
    assert "cifar10, svhn, tiny-imagenet" in output("fetch", "--help")
