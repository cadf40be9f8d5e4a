import stat
from pathlib import Path

import pytest

from recollect import InputError
from recollect.auditing import Audit
from recollect.records import plain
from tests.auditing.making import small_audit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "audit"
    small_audit(out=folder, fail_above=0.01)
    return folder


def test_a_saved_audit_is_read_back_whole(folder: Path, tmp_path: Path) -> None:
    loaded, fresh = Audit.load(folder), small_audit(out=folder, fail_above=0.01)
    old, new = plain(loaded.to_dict()), plain(fresh.to_dict())
    for facts in (old, new):
        facts["provenance"].pop("started")
    assert old == new
    assert str(loaded) == str(fresh)
    assert loaded.verdict == fresh.verdict
    assert loaded.rate("train", "any mask", "blind").count == 8
    copy = loaded.save(tmp_path / "copy")
    assert (copy / "images.csv").read_bytes() == (folder / "images.csv").read_bytes()
    assert plain(Audit.load(copy).to_dict()) == plain(loaded.to_dict())


def test_a_folder_that_may_not_be_written_to_can_be_read(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert Audit.load(folder).headline
    finally:
        folder.chmod(stat.S_IRWXU)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_folder_without_an_audit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*audit\.json"):
        Audit.load(tmp_path)


def test_a_notebook_shows_a_few_sentences(folder: Path) -> None:
    shown = Audit.load(folder)._repr_html_()
    assert len(shown) < 1500
    assert "<b>Attacks recover 8 of 8 training images from this model" in shown
    assert "<p>Model failed: 8 of 8" in shown


def test_columns_of_numbers_are_numbers_even_where_none_is_known(folder: Path) -> None:
    frame = Audit.load(folder).to_frame()
    for name in ("mse", "psnr", "nearest_mse", "mask_accuracy", "mask_iou"):
        assert frame[name].dtype == float, name
    assert frame[frame.method == "known"].mask_iou.isna().all()
