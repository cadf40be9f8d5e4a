from dataclasses import replace
from pathlib import Path

import pytest

from recollect import InputError
from recollect.paper.record_file import RecordFile, file_name
from recollect.paper.store import Store
from recollect.records import Record
from tests.paper.making import FIT, add_records
from tests.paper.test_store import BEST, ERRORS, LAST, training


def test_a_file_that_does_not_exist_is_empty_and_an_empty_one_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert RecordFile.read(path) == RecordFile()
    RecordFile(training(1e-2)).write(path)
    assert path.exists()
    RecordFile().write(path)
    assert not path.exists()


def test_the_training_comes_first_and_the_cells_in_order(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [BEST, LAST], ERRORS)
    store.add_training(FIT, training(1e-2))
    store.pack()
    path = tmp_path / "records" / file_name(LAST.identity)
    file = RecordFile.read(path)
    assert file.training is not None
    assert list(file.records) == sorted([LAST.key, BEST.key])
    again = tmp_path / f"{FIT.name}.jsonl"
    RecordFile(file.training, dict(reversed(list(file.records.items())))).write(again)
    assert again.read_bytes() == path.read_bytes()


def test_the_record_of_another_training_is_refused(tmp_path: Path) -> None:
    RecordFile(training(1e-2)).write(tmp_path / "other.jsonl")
    with pytest.raises(InputError, match=f"line 1, is the record of another training, {FIT.name}; remove the line"):
        RecordFile.read(tmp_path / "other.jsonl")


@pytest.mark.parametrize("word", ["0.001", FIT.name])
def test_an_edited_line_is_refused_by_its_number(word: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST], ERRORS)
    store.pack()
    (path,) = (tmp_path / "records").iterdir()
    path.write_text(path.read_text().replace(word, "0.002"))
    with pytest.raises(InputError, match=f"{path.name}, line 1, .* does not fit; remove the line, and it is measured"):
        store.find(LAST)


def test_a_new_record_replaces_that_of_the_same_cell_with_other_settings() -> None:
    blind = Record({"training": "a", "method": "blind"}, {"gamma": 0.5}, [], [1e-9], [3], [120], ["converged"])
    known = replace(blind, cell={"training": "a", "method": "known"})
    again = replace(blind, settings={"gamma": 1.0}, mse=[1e-8])
    file = RecordFile().with_records([blind, known]).with_records([again])
    assert set(file.records) == {again.key, known.key}
    assert again in file.by_name.values()
