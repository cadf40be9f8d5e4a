from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect import InputError
from recollect.auditing.pictures import save_arrays
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import (
    EXPERIMENTS,
    accurate,
    near_threshold,
    psnr,
    thresholds,
)
from recollect.paper.render.figures import draw, table_of
from recollect.paper.scales import FULL, SMALL, Scale
from tests.paper.making import ERRORS, add_records, records_alone

TWO_MASKS = replace(SMALL, masks=("block", "dust"))


def drawn(experiment: Experiment, folder: Path, scale: Scale = TWO_MASKS) -> list[Path]:
    return draw([experiment], scale, records_alone(folder), lambda _: None)


@pytest.mark.parametrize("name", ["accurate", "thresholds", "noise"])
def test_figures_are_drawn_from_records_alone_and_always_the_same(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    add_records(records_alone(tmp_path).store, experiment.cells(TWO_MASKS), ERRORS)
    first = {path: path.read_bytes() for path in drawn(experiment, tmp_path)}
    assert {path.suffix for path in first} >= {".svg", ".png"}
    assert {path: path.read_bytes() for path in drawn(experiment, tmp_path)} == first
    assert not (tmp_path / "work").exists()


def test_cells_without_a_record_are_left_out(tmp_path: Path) -> None:
    log: list[str] = []
    assert not draw(list(EXPERIMENTS.values()), SMALL, records_alone(tmp_path), log.append)
    assert all(line.endswith("nothing is recorded yet") for line in log)
    some = [
        c for c in accurate.EXPERIMENT.cells(SMALL) if c.fit.name.startswith("fc10-lrelu-adam") and c.mask == "dust"
    ]
    add_records(records_alone(tmp_path).store, some, ERRORS)
    assert drawn(accurate.EXPERIMENT, tmp_path)


def test_a_network_with_records_of_the_generic_method_alone_is_left_out(tmp_path: Path) -> None:
    cells = accurate.EXPERIMENT.cells(SMALL)
    add_records(records_alone(tmp_path).store, [c for c in cells if c.fit.kind == "fc10" or c.method == "ddnm"], ERRORS)
    pictures = [path.read_text() for path in drawn(accurate.EXPERIMENT, tmp_path) if path.suffix == ".svg"]
    assert any("FC-10 LReLU" in picture for picture in pictures)
    assert not any("U-Net" in picture for picture in pictures)
    assert "U-Net LReLU" not in table_of(accurate.EXPERIMENT, SMALL, records_alone(tmp_path))


def test_thresholds_have_a_panel_for_each_network_and_none_for_the_generic_method_alone(tmp_path: Path) -> None:
    results, cells = records_alone(tmp_path).store, thresholds.EXPERIMENT.cells(FULL)
    add_records(results, [c for c in cells if c.method == "ddnm"], ERRORS)
    assert not thresholds.EXPERIMENT.figures(FULL, results)
    add_records(results, [c for c in cells if c.fit.activation == "softplus"], ERRORS)
    (figure,) = thresholds.EXPERIMENT.figures(FULL, results).values()
    assert [place.get_title() for place in figure.axes] == ["Softplus, Muon", "Softplus, Adam"]
    assert [len(place.lines) for place in figure.axes] == [6, 6]


def test_what_lies_below_an_axis_is_drawn_at_its_edge(tmp_path: Path) -> None:
    far_off = {"iterate": [1e20] * 4}
    add_records(records_alone(tmp_path).store, psnr.EXPERIMENT.cells(TWO_MASKS), ERRORS | far_off)
    axes = psnr.figures(TWO_MASKS, records_alone(tmp_path).store)["psnr-adam"].axes
    drawn = [line.get_ydata() for place in axes for line in place.lines if line.get_label() == "iterate"]
    assert drawn
    assert all((line == 0).all() for line in drawn)


def test_pictures_of_real_images_stay_in_the_work_folder(tmp_path: Path) -> None:
    here, picture = records_alone(tmp_path), np.zeros((2, 4, 4, 3), np.uint8)
    save_arrays(
        here.pictures("near-threshold"), {"mse": np.array([4.5e-4, 4e-4]), "original": picture, "recovered": picture}
    )
    for scale, place in ((SMALL, "results"), (FULL, "work")):
        paths = draw([EXPERIMENTS["near-threshold"]], scale, here, lambda _: None)
        assert [path.relative_to(tmp_path).parts[0] for path in paths] == [place, place]
    here.pictures("near-threshold").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"near-threshold.npz is damaged"):
        drawn(near_threshold.EXPERIMENT, tmp_path)
