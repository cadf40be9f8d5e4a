"""An audit without pictures: the same numbers, and no image in any file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.auditing import Audit
from recollect.auditing.verify import verify_audit
from recollect.errors import InputError
from tests.auditing.making import small_audit

PIXELS = 8 * 8  # of one channel of one image
SETTINGS: dict[str, Any] = {"masks": "half", "methods": "blind"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    small_audit(out=folder, pictures=False, **SETTINGS)
    return folder


def number_lists(value: Any) -> Iterator[list[Any]]:
    """Every list of numbers in a JSON file."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        if value and all(isinstance(item, int | float) for item in value):
            yield value
        for item in value:
            yield from number_lists(item)


def test_no_file_holds_an_image(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".html", ".json", ".csv", ".lock", ""}
    assert len([path for path in files if path.suffix == ".json"]) >= 3
    for path in files:
        text = path.read_text(encoding="utf-8")  # nothing binary
        assert "iVBORw0KGgo" not in text  # how every PNG begins in base64
        assert not re.search(r"[A-Za-z0-9+/]{200}", text), path  # base64 of an image would be longer
        if path.suffix == ".json":
            assert all(len(numbers) < PIXELS for numbers in number_lists(json.loads(text))), path


def test_the_report_says_why_there_are_none(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "without pictures" in page
    assert 'id="gallery"' not in page
    assert "<img" not in page


def test_numbers_are_those_of_an_audit_with_pictures(folder: Path, tmp_path: Path) -> None:
    small_audit(out=tmp_path, **SETTINGS)
    assert (tmp_path / "images.csv").read_bytes() == (folder / "images.csv").read_bytes()
    assert (tmp_path / "samples.npz").exists()
    assert verify_audit(folder).passed


def test_it_is_resumed_and_saved_elsewhere_without_pictures(folder: Path, tmp_path: Path) -> None:
    record = next(folder.glob("cells/*.json"))
    before = record.stat().st_mtime_ns
    small_audit(out=folder, pictures=False, **SETTINGS)
    assert record.stat().st_mtime_ns == before
    Audit.load(folder).save(tmp_path / "copy")
    assert not list((tmp_path / "copy").rglob("*.npz"))


def test_a_folder_with_pictures_is_refused(tmp_path: Path) -> None:
    found = small_audit(out=tmp_path, **SETTINGS)
    with pytest.raises(InputError, match=r"holds pictures of an earlier audit .*choose another folder"):
        small_audit(out=tmp_path, pictures=False, **SETTINGS)
    assert found.store.pictures


def test_pictures_are_made_where_an_audit_without_them_was(tmp_path: Path) -> None:
    small_audit(out=tmp_path, pictures=False, **SETTINGS)
    small_audit(out=tmp_path, **SETTINGS)
    assert (tmp_path / "samples.npz").exists()
    assert all(path.with_suffix(".npz").exists() for path in tmp_path.glob("cells/*.json"))


def test_what_is_neither_yes_nor_no_is_refused() -> None:
    with pytest.raises(InputError, match="pictures is True or False"):
        small_audit(pictures="no")
