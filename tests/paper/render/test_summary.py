from dataclasses import replace
from pathlib import Path

from recollect.paper.experiments import moderate_unet
from recollect.paper.render.summary import at_the_papers_gamma, shares, summary
from recollect.paper.scales import FULL
from recollect.paper.store import Store
from tests.paper.making import ERRORS, add_records

ROOT = Path(__file__).parents[3]


def test_the_summary_sets_the_papers_numbers_beside_ours(tmp_path: Path) -> None:
    assert summary(FULL, Store(tmp_path)) == ""
    lines = summary(FULL, Store(ROOT / "results" / "paper" / "full")).splitlines()
    assert {line.split(" | ")[0] for line in lines[2:-2]} == {"| Table 1", "| Table 2", "| Figure 3"}
    assert lines[-1].endswith("minutes on one H200.")
    methods = {(line.split(" | ")[0], line.split(" | ")[2]) for line in lines[2:-2]}
    assert {("| Table 1", "biharmonic"), ("| Table 2", "ddnm"), ("| Figure 3", "biharmonic")} <= methods


def test_both_answers_of_blind_and_known_stand_beside_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_records(store, moderate_unet.cells(FULL), ERRORS)
    for record in store.records():
        if record.cell["method"] == "blind":
            store.add(replace(record, mse_pasted=[1e-9] * 4))
    rows = [line.strip("| ").split(" | ") for line in summary(FULL, store).splitlines()[2:-2]]
    shown = {row[2]: (row[3], row[4]) for row in rows if row[0] == "Table 2"}
    assert shown["blind"] == ("50.3, 75.9, 22.9", "75, 75, 75")
    assert shown["blind, pasted"] == ("not in it", "100, 100, 100")
    assert "known, not pasted" not in shown  # of these records it is not known


def test_a_mask_without_a_record_has_a_dash(tmp_path: Path) -> None:
    cells = at_the_papers_gamma(moderate_unet.cells(FULL))
    own = [cell for cell in cells if cell.fit == cells[0].fit]
    store = Store(tmp_path)
    assert shares(own, store, "blind") == []
    add_records(store, [cell for cell in own if cell.mask == FULL.table_masks[1]], ERRORS)
    assert shares(own, store, "blind") == ["-", "75", "-"]


def test_the_minutes_are_those_of_one_kind_of_device(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = at_the_papers_gamma(moderate_unet.cells(FULL))
    add_records(store, cells[:1], ERRORS)
    for fit, device in ((cells[0].fit, "NVIDIA H200"), (replace(cells[0].fit, seed=43), "AMD EPYC")):
        facts = {"training": fit.name, "seconds": 120.0, "finished": True, "milestones": []}
        store.add_training(fit, {**facts, "provenance": {"device": device}})
    assert "took 2 minutes on one H200" in summary(FULL, store)


def test_shares_are_those_of_one_method_by_mask() -> None:
    cells = at_the_papers_gamma(moderate_unet.cells(FULL))
    assert {cell.set for cell in cells} == {"train"}
    own = [cell for cell in cells if cell.fit == cells[0].fit]
    found = shares(own, Store(ROOT / "results" / "paper" / "full"), "blind")
    assert len(found) == len(FULL.table_masks)
    assert all(0 <= float(share) <= 100 for share in found)
