import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect import InputError
from recollect.paper.cells import Cell
from recollect.paper.store import Store
from tests.paper.making import FIT, add_records

LAST = Cell(FIT, FIT.milestones[-1], "train", "block", "known")
BEST = replace(LAST, loss=None)
ERRORS = {"known": [1e-9, 1e-3]}


def training(*reached: float) -> dict[str, Any]:
    return {"training": FIT.name, "finished": True, "milestones": [{"wanted": loss} for loss in reached]}


def test_a_cell_without_a_record_is_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find(LAST) is None
    assert store.is_missing(LAST)
    add_records(store, [LAST], ERRORS)
    assert not store.is_missing(LAST)
    record = store.find(LAST)
    assert record is not None
    assert record.mse == ERRORS["known"]
    assert store.records() == [record]


def test_the_best_weights_replace_a_last_loss_that_was_not_reached(tmp_path: Path) -> None:
    store, first = Store(tmp_path), replace(LAST, loss=FIT.milestones[0])
    store.add_training(FIT, training(FIT.milestones[0]))
    assert not store.was_not_reached(first)
    assert store.was_not_reached(LAST)
    assert store.is_missing(LAST)
    add_records(store, [BEST], ERRORS)
    assert not store.is_missing(LAST)
    assert store.cell_or_best(LAST) == BEST
    assert store.find_or_best(LAST) == store.find(BEST)
    assert store.cell_or_best(first) == first


def test_a_loss_above_the_last_that_was_not_reached_is_not_missing(tmp_path: Path) -> None:
    store, first = Store(tmp_path), replace(LAST, loss=FIT.milestones[0])
    store.add_training(FIT, training())
    assert not store.is_missing(first)


def test_cells_are_single_files_until_they_are_packed_into_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST, BEST], ERRORS)
    store.add_training(FIT, training(1e-2))
    assert len(list((tmp_path / "computing").rglob("*.*"))) == 3
    before = store.records(), store.trainings(), store.find(BEST)
    store.pack()
    assert [path.name for path in tmp_path.rglob("*.*")] == [f"{FIT.name}.jsonl"]
    for again in (store, Store(tmp_path)):
        assert (again.records(), again.trainings(), again.find(BEST)) == before
        assert again.has(LAST)
        assert again.has_finished(FIT)
    content = (tmp_path / "records" / f"{FIT.name}.jsonl").read_text()
    store.pack()
    assert (tmp_path / "records" / f"{FIT.name}.jsonl").read_text() == content
    lines = [json.loads(line) for line in content.splitlines()]
    assert lines[0]["training"] == FIT.name
    assert [line["mse"] for line in lines[1:]] == [ERRORS["known"]] * 2


def test_a_run_that_was_killed_while_packing_packs_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST], ERRORS)
    single = {path: path.read_bytes() for path in (tmp_path / "computing").rglob("*.gz")}
    store.pack()
    for path, content in single.items():
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert [record.mse for record in store.records()] == [ERRORS["known"]]
    store.pack()
    assert [record.mse for record in Store(tmp_path).records()] == [ERRORS["known"]]


def test_a_new_measurement_replaces_that_of_other_settings(tmp_path: Path) -> None:
    """The old one is shown until then, and a run measures the cell."""
    store, wider = Store(tmp_path), replace(LAST, fit=replace(FIT, width=65))
    add_records(store, [LAST], ERRORS)
    store.pack()
    assert (store.find(wider), store.is_missing(wider), store.find_earlier(LAST)) == (None, True, None)
    assert store.find_earlier(wider) == store.find(LAST)
    assert store.other_settings_shown([LAST]) == {}
    assert store.other_settings_shown([wider]) == {"known": 1}
    add_records(store, [wider], {"known": [1e-5]})
    store.pack()
    assert [record.mse for record in store.records()] == [[1e-5]]
    assert store.find(LAST) is None


def test_a_record_of_an_earlier_version_is_shown_until_the_cell_is_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST], ERRORS)
    (record,) = store.records()
    store.add(replace(record, provenance={**record.provenance, "versions": {"recollect": "0.0.1"}}))
    store.pack()
    assert (store.find(LAST), store.has(LAST), store.is_missing(LAST)) == (None, False, True)
    shown = store.shown(LAST)
    assert shown is not None
    assert shown.mse == ERRORS["known"]
    assert store.versions_shown([LAST]) == (1, {"0.0.1": 1})
    add_records(store, [LAST], {"known": [1e-5, 1e-5]})
    store.pack()
    assert [found.mse for found in store.records()] == [[1e-5, 1e-5]]


def test_a_training_and_facts_of_an_earlier_version_are_made_again(tmp_path: Path) -> None:
    store, earlier = Store(tmp_path), {"provenance": {"versions": {"recollect": "0.0.1"}}}
    store.add_training(FIT, training(1e-2) | earlier)
    assert not store.has_finished(FIT)
    assert [facts["training"] for facts in store.trainings()] == [FIT.name]
    for facts in (earlier, {"answer": 1}):
        store.add_facts("made", facts)
        assert not store.has_facts("made")
    store.add_facts("made", {"provenance": {}})
    assert store.has_facts("made")


def test_a_training_of_another_recipe_under_the_same_name_does_not_count(tmp_path: Path) -> None:
    store, wider = Store(tmp_path), replace(FIT, width=65)
    store.add_training(FIT, training(1e-2) | {"fit": FIT.identity})
    for _ in range(2):
        assert store.has_finished(FIT)
        assert store.training(wider) is None
        store.pack()


def test_records_that_are_set_aside_leave_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST, BEST], ERRORS)
    store.add_training(FIT, training(1e-2))
    aside = store.set_aside([LAST.key], FIT)
    assert (store.has(LAST), store.has(BEST), store.trainings()) == (False, True, [])
    assert [record.key for record in Store(aside).records()] == [LAST.key]
    assert Store(aside).has_finished(FIT)
    assert store.set_aside([BEST.key], None) != aside
    assert [path.name for path in (tmp_path / "records").iterdir()] == []


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b", b"no gzip"])
def test_a_damaged_record_is_named_and_not_overwritten(damage: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST], ERRORS)
    (path,) = (tmp_path / "computing" / "cells").iterdir()
    path.write_bytes(damage)
    with pytest.raises(InputError, match=f"{path.name}.*; remove it, and the cell is measured again"):
        store.find(LAST)
    assert path.read_bytes() == damage


def test_the_record_of_another_cell_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST, BEST], ERRORS)
    one, other = sorted((tmp_path / "computing" / "cells").iterdir())
    one.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=f"{one.name} is the record of another cell"):
        [store.find(cell) for cell in (LAST, BEST)]


def test_edited_records_are_refused_by_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, [LAST], ERRORS)
    store.add_training(FIT, training(1e-2))
    store.add_facts("made", {"answer": 1})
    assert store.facts("made") == {"answer": 1}
    folders = ("computing/cells", "computing/trainings", "facts")
    cell, fit, facts = (next((tmp_path / name).iterdir()) for name in folders)
    cell.write_bytes(gzip.compress(gzip.decompress(cell.read_bytes()).replace(b"0.001", b"0.002")))
    for path in (fit, facts):
        path.write_text(path.read_text().replace("1", "2"))
    with pytest.raises(InputError, match=r"does not fit; remove it, and the cell is measured again"):
        store.find(LAST)
    with pytest.raises(InputError, match=fit.name):
        store.training(FIT)
    with pytest.raises(InputError, match=facts.name):
        store.facts("made")


def test_files_under_the_name_of_another_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add_training(FIT, {**training(1e-2), "training": "another"})
    with pytest.raises(InputError, match="is the record of another training, another"):
        store.training(FIT)
    store.add_facts("made", {"answer": 1})
    (tmp_path / "facts" / "made.json").rename(tmp_path / "facts" / "other.json")
    with pytest.raises(InputError, match="holds the results of another experiment"):
        store.facts("other")
