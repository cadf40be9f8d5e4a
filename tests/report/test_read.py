"""What is refused, and what becomes a warning."""

from dataclasses import replace
from pathlib import Path

import pytest

from recollect.errors import InputError
from recollect.palette import PALETTE
from recollect.records import write_json, write_record
from recollect.report import write_report
from recollect.report.read import disagreements, read_audit
from tests.report.making import AuditFiles, record


def test_a_folder_without_an_audit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        read_audit(tmp_path)
    write_json(tmp_path / "audit.json", {"format": "recollect-audit-99"})
    with pytest.raises(InputError, match="not an audit that this version"):
        read_audit(tmp_path)
    AuditFiles().write(tmp_path)
    with pytest.raises(InputError, match="nothing to report"):
        read_audit(tmp_path)


def test_records_that_do_not_say_what_they_are_of_are_refused(tmp_path: Path) -> None:
    AuditFiles([replace(record([0.1]), cell={"set": "train"})]).write(tmp_path)
    with pytest.raises(InputError, match="does not say its mask, method"):
        read_audit(tmp_path)


def test_records_of_an_unknown_set_are_refused(tmp_path: Path) -> None:
    AuditFiles([record([0.1], set_name="validation")]).write(tmp_path)
    with pytest.raises(InputError, match="'validation'; an audit has the sets train and control"):
        read_audit(tmp_path)


def test_records_without_an_error_for_each_image_are_refused(tmp_path: Path) -> None:
    AuditFiles([replace(record([0.1]), ids=["a", "b"])]).write(tmp_path)
    with pytest.raises(InputError, match="1 errors for 2 ids"):
        read_audit(tmp_path)


def test_further_names_of_a_cell_are_ignored_but_two_records_of_one_cell_are_refused(tmp_path: Path) -> None:
    one = record([0.1])
    files = AuditFiles([replace(one, cell={**one.cell, "seed": seed}) for seed in (1, 2)])
    assert read_audit(AuditFiles(files.records[:1]).write(tmp_path)).records == files.records[:1]
    with pytest.raises(InputError, match="2 records of blind on train images under the mask block"):
        read_audit(files.write(tmp_path))


def test_pictures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    AuditFiles([record([0.1])]).write(tmp_path)
    for content in (b"no such thing", b"PK\x03\x04 cut off"):
        (tmp_path / "samples.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"samples\.npz"):
            read_audit(tmp_path)


def test_a_summary_of_another_audit_becomes_a_warning(tmp_path: Path, planted: AuditFiles) -> None:
    assert list(disagreements(planted.in_memory)) == []
    changed = {**planted.facts["summary"][0], "accurate": {"count": 23, "total": 24}}
    stranger = {**planted.facts["summary"][0], "mask": "nowhere"}
    other = AuditFiles(planted.records, facts={**planted.facts, "summary": [changed, stranger]})
    assert len(list(disagreements(other.in_memory))) == 2
    page = write_report(other.write(tmp_path)).read_text()
    assert "are not those of the records" in page
    assert "there is no such record" in page


def test_only_the_records_that_the_audit_lists_are_read_and_in_its_order(tmp_path: Path) -> None:
    files = AuditFiles([record([1e-9], mask=mask) for mask in ("scatter", "block")])
    write_record(tmp_path / "cells", replace(record([1e-1]), settings={"gamma": 1}))  # of an earlier audit
    assert [r.cell["mask"] for r in read_audit(files.write(tmp_path)).records] == ["scatter", "block"]


def test_methods_are_described_as_the_audit_recorded_them(planted: AuditFiles) -> None:
    facts = planted.in_memory.method_facts()
    assert list(facts) == ["blind", "iterate", "known"]
    assert facts["blind"].summary == planted.facts["methods"]["blind"]["summary"]
    assert facts["blind"].colour == "blue"
    assert [method.is_attack for method in facts.values()] == [True, True, False]


def test_a_method_without_facts_is_named_and_gets_a_colour_that_is_free() -> None:
    recorded = {"blind": {"summary": "an attack", "colour": "blue"}}
    records = [record([0.1], method=name) for name in ("mine", "blind")]
    facts = AuditFiles(records, facts={"methods": recorded}).in_memory.method_facts()
    assert list(facts) == ["blind", "mine"]
    assert facts["mine"].label == "mine"
    assert facts["mine"].colour in set(PALETTE) - {"blue"}
