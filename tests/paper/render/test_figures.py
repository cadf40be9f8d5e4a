from dataclasses import replace
from pathlib import Path

import pytest

from recollect.paper.experiment import Experiment
from recollect.paper.experiments import (
    EXPERIMENTS,
    accurate,
)
from recollect.paper.render.figures import draw, table_of
from recollect.paper.scales import SMALL, Scale
from tests.paper.making import ERRORS, add_records, records_alone

TWO_MASKS = replace(SMALL, masks=("block", "dust"))
ONE_MASK = replace(SMALL, masks=("dust",), table_masks=("dust",))


def drawn(experiment: Experiment, folder: Path, scale: Scale = TWO_MASKS) -> list[Path]:
    return draw([experiment], scale, records_alone(folder), lambda _: None)


@pytest.mark.parametrize("name", ["accurate", "thresholds", "noise"])
def test_figures_are_drawn_from_records_alone_and_always_the_same(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    cells = experiment.cells(ONE_MASK)
    add_records(records_alone(tmp_path).store, [c for c in cells if c.fit == cells[0].fit], ERRORS)
    first = {path: path.read_bytes() for path in drawn(experiment, tmp_path, ONE_MASK)}
    assert {path.suffix for path in first} >= {".svg"}
    assert {path: path.read_bytes() for path in drawn(experiment, tmp_path, ONE_MASK)} == first
    assert not (tmp_path / "work").exists()


def test_cells_without_a_record_are_left_out(tmp_path: Path) -> None:
    log: list[str] = []
    assert not draw(list(EXPERIMENTS.values()), ONE_MASK, records_alone(tmp_path), log.append)
    assert log
    assert all(line.endswith("nothing is recorded yet") for line in log)
    cells = [c for c in accurate.EXPERIMENT.cells(ONE_MASK) if c.fit.name.startswith("fc10-lrelu-adam")]
    add_records(records_alone(tmp_path).store, cells, ERRORS)
    assert drawn(accurate.EXPERIMENT, tmp_path, ONE_MASK)


def test_a_network_with_records_of_the_generic_method_alone_is_left_out(tmp_path: Path) -> None:
    cells = accurate.EXPERIMENT.cells(ONE_MASK)
    add_records(
        records_alone(tmp_path).store,
        [c for c in cells if c.fit.name.startswith("fc10-lrelu") or c.method == "ddnm"],
        ERRORS,
    )
    pictures = [path.read_text() for path in drawn(accurate.EXPERIMENT, tmp_path, ONE_MASK) if path.suffix == ".svg"]
    assert any("FC-10 LReLU" in picture for picture in pictures)
    assert not any("U-Net" in picture for picture in pictures)
    assert "U-Net LReLU" not in table_of(accurate.EXPERIMENT, ONE_MASK, records_alone(tmp_path))
