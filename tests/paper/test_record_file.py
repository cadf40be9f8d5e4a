from dataclasses import replace
from pathlib import Path

import pytest

from recollect import InputError
from recollect.paper.record_file import RecordFile, file_name
from recollect.records import Record

BLIND = Record({"training": "a", "method": "blind"}, {"gamma": 0.5}, [], [1e-9], [3], [120], ["converged"])
KNOWN = replace(BLIND, cell={"training": "a", "method": "known"})


def held(*records: Record) -> RecordFile:
    return RecordFile({"training": "a", "seconds": 1.0}).with_records(records)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / file_name(BLIND.cell)
    held(KNOWN, BLIND).write(path)
    read = RecordFile.read(path)
    assert path.name == "a.jsonl"
    assert read.training == {"training": "a", "seconds": 1.0}
    assert read.records == {record.key: record for record in (BLIND, KNOWN)}


def test_a_new_record_replaces_that_of_the_same_cell_with_other_settings() -> None:
    again = replace(BLIND, settings={"gamma": 1.0}, mse=[1e-8])
    file = held(BLIND, KNOWN).with_records([again])
    assert set(file.records) == {again.key, KNOWN.key}
    assert again in file.by_name.values()


def test_a_file_that_holds_nothing_more_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = RecordFile().with_records([BLIND])
    file.write(path)
    file.without([BLIND.key]).write(path)
    assert not path.exists()
    assert RecordFile.read(path) == RecordFile()


def test_a_training_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    held(BLIND).write(tmp_path / "b.jsonl")
    with pytest.raises(InputError, match=r"is the record of another training, a; remove the line"):
        RecordFile.read(tmp_path / "b.jsonl")
