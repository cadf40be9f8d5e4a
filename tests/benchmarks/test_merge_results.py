from pathlib import Path

import pytest

from recollect.paper.cells import Cell
from recollect.paper.store import Store
from recollect.records import Record
from recollect.version import __version__
from tests.benchmarks.running import benchmark
from tests.paper.making import FIT, add_records

main, contents = benchmark("merge_results").main, benchmark("short_jobs").contents


def test_records_of_another_run_replace_those_of_the_same_cells(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    both, only_here = (Cell(FIT, 1e-3, "train", mask, "known") for mask in ("block", "dust"))
    add_records(here, [both, only_here], {"known": [0.5]})
    here.pack()
    add_records(there, [both], {"known": [1e-9]})
    there.add_training(FIT, {"training": FIT.name, "finished": True})
    there.add_facts("theorem-1", {"networks": []})
    main([str(there.folder), str(here.folder)])
    merged = Store(here.folder)
    assert [record.mse for cell in (both, only_here) if (record := merged.find(cell))] == [[1e-9], [0.5]]
    assert [facts["training"] for facts in merged.trainings()] == [FIT.name]
    assert merged.facts("theorem-1") == {"networks": []}


def test_no_record_of_this_version_is_replaced_by_an_earlier_one(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    cell = Cell(FIT, 1e-3, "train", "block", "known")
    write(here, cell, 1e-9)
    write(there, cell, 0.5, version="0.1.0")
    main([str(there.folder), str(here.folder)])
    assert mse_of(here, cell) == [1e-9]
    write(there, cell, 0.25)
    main([str(there.folder), str(here.folder)])
    assert mse_of(here, cell) == [0.25]


def test_what_an_earlier_version_measured_goes_when_its_training_is_replaced(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    old, new = (Cell(FIT, 1e-3, "train", mask, "known") for mask in ("block", "dust"))
    write(here, old, 0.5, version="0.1.0")
    write(there, new, 1e-9, "weights")
    there.add_training(FIT, {"training": FIT.name, "finished": True})
    main([str(there.folder), str(here.folder)])
    assert [record.mse for record in Store(here.folder).records()] == [[1e-9]]


def test_a_training_that_did_not_end_replaces_nothing(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    write(here, Cell(FIT, 1e-3, "train", "block", "known"), 0.5, version="0.1.0")
    here.add_training(FIT, {"training": FIT.name, "finished": True, "provenance": {"versions": {"recollect": "0.1.0"}}})
    here.pack()
    there.add_training(FIT, {"training": FIT.name, "finished": False})
    before = contents(here.folder)
    main([str(there.folder), str(here.folder)])
    assert contents(here.folder) == before


def test_records_of_other_weights_are_not_mixed(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    mine, other = (Cell(FIT, 1e-3, "train", mask, "known") for mask in ("block", "dust"))
    write(here, mine, 0.5, "weights")
    write(there, other, 1e-9, "other weights")
    with pytest.raises(SystemExit):
        main([str(there.folder), str(here.folder)])
    assert [record.mse for record in Store(here.folder).records()] == [[0.5]]


def test_what_the_run_had_set_aside_is_replaced(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    cells = [Cell(FIT, 1e-3, "train", mask, "known") for mask in ("block", "dust")]
    for store in (here, there):
        write(store, cells[0], 0.5, "weights")
    there.set_aside([cells[0].key], None)
    write(there, cells[1], 1e-9, "other weights")
    main([str(there.folder), str(here.folder)])
    assert [record.mse for record in Store(here.folder).records()] == [[1e-9]]


def write(store: Store, cell: Cell, error: float, model: str = "weights", version: str = __version__) -> None:
    """Write the only record of a cell into the file of its training."""
    provenance = {"model": model, "versions": {"recollect": version}, "train_loss": 1e-3}
    store.add(Record(cell.identity, cell.settings, [], [error], [1], [40], ["done"], provenance=provenance))
    store.pack()


def mse_of(store: Store, cell: Cell) -> list[float] | None:
    record = Store(store.folder).find(cell)
    return record.mse if record else None
