from pathlib import Path

from recollect.paper.cells import Cell
from recollect.paper.store import Store
from tests.benchmarks.running import benchmark
from tests.paper.making import FIT, add_records

main = benchmark("merge_results").main


def test_records_of_another_run_replace_those_of_the_same_cells(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    both, only_here = (Cell(FIT, 1e-3, "train", mask, "known") for mask in ("block", "dust"))
    add_records(here, [both, only_here], {"known": [0.5]})
    here.pack()
    add_records(there, [both], {"known": [1e-9]})
    there.add_training(FIT, {"training": FIT.name, "finished": True})
    there.add_facts("theorem-1", {"networks": []})
    main(str(there.folder), str(here.folder))
    merged = Store(here.folder)
    assert [record.mse for cell in (both, only_here) if (record := merged.find(cell))] == [[1e-9], [0.5]]
    assert [facts["training"] for facts in merged.trainings()] == [FIT.name]
    assert merged.facts("theorem-1") == {"networks": []}
