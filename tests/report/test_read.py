"""What is refused, what is forgiven, and what is said aloud."""

from dataclasses import replace
from pathlib import Path

import pytest

from recollect.errors import InputError
from recollect.records import Record, write_json
from recollect.report import write_report
from recollect.report.read import disagreements, read_audit
from tests.report.making import Making


def record(mse: list[float], **settings: object) -> Record:
    cell = {"set": "train", "mask": "block", "method": "blind"}
    return Record(cell, settings, [str(i) for i in range(len(mse))], mse, [], [], [])


def test_a_folder_without_an_audit_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        write_report(tmp_path)
    write_json(tmp_path / "audit.json", {"format": "recollect-audit-99"})
    with pytest.raises(InputError, match="not an audit that this version"):
        write_report(tmp_path)
    write_json(tmp_path / "audit.json", {"format": "recollect-audit-1"})
    with pytest.raises(InputError, match="nothing to report on"):
        write_report(tmp_path)


def test_records_that_do_not_say_what_they_are_of_are_refused(tmp_path: Path) -> None:
    Making([replace(record([0.1]), cell={"set": "train"})]).write(tmp_path)
    with pytest.raises(InputError, match="does not say its mask, method"):
        read_audit(tmp_path)


def test_pictures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    Making([record([0.1])]).write(tmp_path)
    for content in (b"no such thing", b"PK\x03\x04 cut off"):
        (tmp_path / "samples.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"samples\.npz"):
            read_audit(tmp_path)


def test_a_summary_of_another_run_becomes_a_warning(tmp_path: Path, planted: Making) -> None:
    assert list(disagreements(read_audit(planted.write(tmp_path / "same")))) == []
    row = {**planted.records[0].cell, "accurate": {"count": 3, "total": 24}}
    stranger = {"set": "train", "mask": "nowhere", "method": "blind"}
    other = Making(planted.records, facts={"summary": [row, stranger]})
    sentences = list(disagreements(read_audit(other.write(tmp_path / "other"))))
    assert len(sentences) == 2
    page = write_report(tmp_path / "other").read_text()
    assert "are not those of the records" in page
    assert "there is no such record" in page


def test_records_of_earlier_settings_in_the_same_folder_are_left_out(tmp_path: Path) -> None:
    old, new = record([1e-1, 1e-1], gamma=1), record([1e-9, 1e-1], gamma=2)
    for name, current in {"old": old, "new": new}.items():
        summary = [{**current.cell, "mean_psnr": current.score.mean_psnr}]
        folder = Making([old, new], facts={"summary": summary}).write(tmp_path / name)
        assert [r.mse for r in read_audit(folder).records] == [current.mse]
        folder = Making([old, new], facts={"cells": [current.key]}).write(tmp_path / f"{name} listed")
        assert [r.mse for r in read_audit(folder).records] == [current.mse]
