from dataclasses import replace
from pathlib import Path

import pytest

from recollect.paper.cells import Cell
from recollect.paper.experiments import accurate
from recollect.paper.render.panels import against_loss, against_threshold, mean_psnr, rate_below
from recollect.paper.render.tables import against_paper, by_mask
from recollect.paper.scales import SMALL
from recollect.records import Record
from tests.paper.making import ERRORS, add_records, records_alone


def record(mse: list[float]) -> Record:
    count = len(mse)
    return Record({}, {}, [], mse, [1] * count, [1] * count, ["done"] * count)


def test_a_rate_has_its_interval_in_percent() -> None:
    value, low, high = rate_below(1e-7)(record([1e-9, 1e-9, 1e-3, 1e-3]))
    assert value == 50
    assert (round(low), round(high)) == (15, 85)


def test_a_mean_of_one_image_has_no_margin() -> None:
    assert mean_psnr(record([1e-4])) == pytest.approx((40, 40, 40))
    mean, low, high = mean_psnr(record([1e-4, 1e-6]))
    assert mean == pytest.approx(50)
    assert mean - low == pytest.approx(high - mean)
    assert high > mean


def test_lines_run_from_the_highest_loss_and_generic_methods_are_horizontal(tmp_path: Path) -> None:
    cells = [c for c in accurate.EXPERIMENT.cells(SMALL) if c.fit.name.startswith("unet-softplus-muon")]
    cells = [c for c in cells if c.mask == "dust" and c.gamma is None]
    store = records_alone(tmp_path).store
    add_records(store, [c for c in cells if c.method in ("blind", "ddnm")], ERRORS)
    lines = against_loss(store, cells, rate_below(5e-4)).lines
    losses = [point.x for point in lines["blind"]]
    assert losses == sorted(losses, reverse=True)
    assert [point.x for point in lines["ddnm"]] == losses
    assert len({point.y for point in lines["ddnm"]}) == 1
    alone = [c for c in cells if c.method == "ddnm"]
    assert against_loss(store, alone, rate_below(5e-4)).lines == {}
    assert against_threshold(store, alone).lines == {}


def test_several_trainings_of_a_network_make_one_point_with_their_range(tmp_path: Path) -> None:
    store = records_alone(tmp_path).store
    fit = SMALL.perfect("fc10", "lrelu", "adam")
    cells = [Cell(replace(fit, seed=seed), 1e-8, "train", "dust", "blind") for seed in (42, 43, 44)]
    for cell, recovered in zip(cells, (1, 2, 3), strict=True):
        add_records(store, [cell], {"blind": [1e-9] * recovered + [1.0] * (4 - recovered)})
    (point,) = against_loss(store, cells, rate_below(1e-7)).lines["blind"]
    assert (point.low, point.y, point.high) == (25, 50, 75)
    assert "| FC-10 LReLU, 3 trainings | adam | 1.0e-08 | 50 (25 to 75) |" in by_mask(store, cells, ["blind"], 1e-7)
    assert "| 50 (25 to 75) |" in against_paper(store, cells, {}, 1e-7)
    (at_threshold, *_) = against_threshold(store, cells).lines["blind"]
    assert (at_threshold.low, at_threshold.high) == (25, 75)
