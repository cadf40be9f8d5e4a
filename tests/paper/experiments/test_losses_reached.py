from pathlib import Path

from recollect.paper.experiments import (
    accurate,
    losses_reached,
)
from recollect.paper.scales import SMALL
from tests.paper.making import ERRORS, add_records, records_alone


def test_the_seconds_of_each_part_are_added_up(tmp_path: Path) -> None:
    cells = [c for c in accurate.cells(SMALL) if c.mask == "dust" and c.loss == 1e-8]
    add_records(records_alone(tmp_path).store, cells, ERRORS)
    text = losses_reached.table(SMALL, records_alone(tmp_path).store)
    assert "| fc10-prelu-adam-photos24 | invented |  | 8 | 8 s |" in text  # six methods, and two by another gamma
    assert "| ddnm on photos6 | invented |  | 1 | 1 s |" in text  # one for all networks
    own = {cell.key for cell in cells}
    assert f"| all | invented | 0 s | {len(own)} | {len(own)} s |" in text


def test_losses_that_one_window_passed_are_marked(tmp_path: Path) -> None:
    store = records_alone(tmp_path).store
    fit = SMALL.perfect("fc10", "lrelu", "adam")
    passed = [(1e-4, 9e-5, 750), (1e-5, 3e-6, 1000), (1e-6, 7e-8, 1250), (1e-7, 7e-8, 1250), (1e-8, 9e-9, 1780)]
    milestones = [{"wanted": w, "loss": loss, "steps": s, "seconds": s / 100} for w, loss, s in passed]
    facts = {"training": fit.name, "milestones": milestones, "goal": {"loss": 1e-8, "seconds": 20}, "loss": 9e-9}
    store.add_training(fit, {**facts, "seconds": 18.0, "provenance": {"device": "invented"}})
    text = losses_reached.table(SMALL, store)
    assert "| 8 s | 10 s | 12 s | 12 s * | 18 s | 9.0e-09 |" in text
    assert "the same weights as at the loss before" in text
