from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from recollect import InputError
from recollect.auditing.pictures import save_arrays
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import (
    accurate,
    control,
    moderate_fc,
    moderate_unet,
    near_threshold,
    noise,
    psnr,
    thresholds,
)
from recollect.paper.experiments import losses_reached as training
from recollect.paper.experiments.catalogue import EXPERIMENTS
from recollect.paper.fit import Bench
from recollect.paper.render.figures import draw, table_of
from recollect.paper.scales import FULL, SMALL
from recollect.paper.store import Results
from tests.paper.making import made_up

ERRORS = {"iterate": [1e-1, 1e-1, 1e-5, 1e-9], "blind": [1e-1, 1e-5, 1e-9, 1e-9], "known": [1e-9] * 4}
ERRORS |= {"refined": [1e-9] * 4, "known-400": [1e-9] * 4, "ddnm": [1e-1] * 4}


def bench(folder: Path) -> Bench:
    return Bench(Results(folder / "results"), folder / "work", None, torch.device("cpu"))


def drawn(experiment: Experiment, folder: Path) -> list[Path]:
    return draw([experiment], SMALL, bench(folder), lambda _: None)


@pytest.mark.parametrize("module", [accurate, thresholds, noise])
def test_figures_are_drawn_from_records_alone(module: object, tmp_path: Path) -> None:
    experiment: Experiment = module.EXPERIMENT  # type: ignore[attr-defined]
    made_up(bench(tmp_path).results, experiment.cells(SMALL), ERRORS)
    paths = [path for path in drawn(experiment, tmp_path) if path.suffix != ".md"]
    assert {path.suffix for path in paths} == {".svg", ".png"}
    picture = next(path for path in paths if path.suffix == ".svg").read_text()
    assert "<svg" in picture
    before = {path: path.read_bytes() for path in paths}
    assert {path: path.read_bytes() for path in drawn(experiment, tmp_path) if path in before} == before
    assert not (tmp_path / "work").exists()


def test_what_has_no_record_is_left_out_and_nothing_at_all_is_said(tmp_path: Path) -> None:
    told: list[str] = []
    assert not draw(list(EXPERIMENTS.values()), SMALL, bench(tmp_path), told.append)
    assert all(line.endswith("nothing is recorded yet") for line in told)
    some = [
        c for c in accurate.EXPERIMENT.cells(SMALL) if c.fit.name.startswith("fc10-lrelu-adam") and c.mask == "half"
    ]
    made_up(bench(tmp_path).results, some, ERRORS)
    assert drawn(accurate.EXPERIMENT, tmp_path)


def test_a_network_of_which_only_the_generic_method_is_recorded_is_left_out(tmp_path: Path) -> None:
    cells = accurate.EXPERIMENT.cells(SMALL)
    made_up(bench(tmp_path).results, [c for c in cells if c.fit.kind == "fc10" or c.method == "ddnm"], ERRORS)
    pictures = [path.read_text() for path in drawn(accurate.EXPERIMENT, tmp_path) if path.suffix == ".svg"]
    assert any("FC-10 LReLU" in picture for picture in pictures)
    assert not any("U-Net" in picture for picture in pictures)
    assert "U-Net LReLU" not in table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))


def test_thresholds_have_a_panel_for_each_network_and_none_for_the_generic_method_alone(tmp_path: Path) -> None:
    results, cells = bench(tmp_path).results, thresholds.EXPERIMENT.cells(FULL)
    made_up(results, [c for c in cells if c.method == "ddnm"], ERRORS)
    assert not thresholds.EXPERIMENT.figures(FULL, results)
    made_up(results, [c for c in cells if c.fit.activation == "softplus"], ERRORS)
    (figure,) = thresholds.EXPERIMENT.figures(FULL, results).values()
    assert [place.get_title() for place in figure.axes] == ["Softplus, Muon", "Softplus, Adam"]
    assert [len(place.lines) for place in figure.axes] == [6, 6]


def test_the_rates_in_a_table_are_those_of_the_records(tmp_path: Path) -> None:
    made_up(bench(tmp_path).results, accurate.EXPERIMENT.cells(SMALL), ERRORS)
    text = table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))
    assert "| FC-10 LReLU | adam | 1.0e-08 | 25 / 50 / 100 / 100 / 100 |" in text
    assert "| paper | not said | 1e-08 | 78 | 4 | 0 |" in text
    assert "| U-Net Softplus | muon | 1.0e-08 | 50 (15 to 85) | 25 (5 to 70) | 0 (0 to 49) |" in text
    assert "Blind recovers more images than iterating in 300 of 300 places, as many in 0, fewer in 0." in text


def test_where_the_last_loss_was_not_reached_the_order_is_of_the_best(tmp_path: Path) -> None:
    cells = [c for c in accurate.EXPERIMENT.cells(SMALL) if c.fit.name.startswith("unet-softplus-adam")]
    last = [c for c in cells if c.loss == c.fit.milestones[-1] and c.mask == "dust" and c.gamma is None]
    made_up(bench(tmp_path).results, [replace(c, loss=None) for c in last], ERRORS | {"iterate": [1e-9] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))
    assert "iterating in 0 of 1 places, as many in 0, fewer in 1: unet-softplus-adam-photos6 best dust." in text


def test_where_the_order_does_not_hold_it_is_said(tmp_path: Path) -> None:
    made_up(bench(tmp_path).results, accurate.EXPERIMENT.cells(SMALL)[:3], ERRORS | {"iterate": [1e-9] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))
    assert "in 0 of 1 places, as many in 0, fewer in 1: fc10-lrelu-adam-photos24 1e-08 block." in text


@pytest.mark.parametrize(("errors", "words"), [(1e-9, "as many in 1,"), (1.0, "as many in 1 (1 of them none),")])
def test_where_blind_and_iterating_are_even_it_is_said(errors: float, words: str, tmp_path: Path) -> None:
    same = {"iterate": [errors] * 4, "blind": [errors] * 4}
    made_up(bench(tmp_path).results, accurate.EXPERIMENT.cells(SMALL)[:3], ERRORS | same)
    assert f"in 0 of 1 places, {words} fewer in 0." in table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))


@pytest.mark.parametrize("experiment", [noise.EXPERIMENT, moderate_fc.EXPERIMENT, moderate_unet.EXPERIMENT])
def test_the_order_is_looked_at_in_every_table(experiment: Experiment, tmp_path: Path) -> None:
    made_up(bench(tmp_path).results, experiment.cells(SMALL), ERRORS)
    assert "Blind recovers more images than iterating in" in table_of(experiment, SMALL, bench(tmp_path))


def test_what_lies_below_an_axis_is_drawn_at_its_edge(tmp_path: Path) -> None:
    far_off = {"iterate": [1e20] * 4}
    made_up(bench(tmp_path).results, psnr.EXPERIMENT.cells(SMALL), ERRORS | far_off)
    axes = psnr.figures(SMALL, bench(tmp_path).results)["psnr-adam"].axes
    drawn = [line.get_ydata() for place in axes for line in place.lines if line.get_label() == "autoencoder iterated"]
    assert drawn
    assert all((line == 0).all() for line in drawn)


@pytest.mark.parametrize("module", [moderate_fc, moderate_unet])
def test_the_papers_table_stands_above_ours(module: object, tmp_path: Path) -> None:
    experiment: Experiment = module.EXPERIMENT  # type: ignore[attr-defined]
    made_up(bench(tmp_path).results, experiment.cells(FULL), ERRORS)
    text = table_of(experiment, FULL, bench(tmp_path))
    for method, values in module.PAPER.items():  # type: ignore[attr-defined]
        assert f"| paper |  | {method} |  | {' | '.join(f'{v:g}' for v in values)} |" in text
    assert "75 (30 to 95)" in text  # blind below 5e-4


def test_control_images_are_counted_over_all_masks(tmp_path: Path) -> None:
    made_up(bench(tmp_path).results, control.EXPERIMENT.cells(SMALL), ERRORS)
    assert "| blind | 12 of 24 (50%) | 18 of 24 (75%) | 3 of 4 on block |" in table_of(
        control.EXPERIMENT, SMALL, bench(tmp_path)
    )


def test_what_each_part_took_is_added_up_from_the_records(tmp_path: Path) -> None:
    cells = [c for c in accurate.cells(SMALL) if c.mask == "dust" and c.loss == 1e-8]
    made_up(bench(tmp_path).results, cells, ERRORS)
    text = training.table(SMALL, bench(tmp_path).results)
    assert "| fc10-prelu-adam-photos24 | made up |  | 7 | 7 s |" in text  # five methods, and two by another gamma
    assert "| ddnm on photos6 | made up |  | 1 | 1 s |" in text  # one for all networks
    own = {cell.key for cell in cells}
    assert f"| all | made up | 0 s | {len(own)} | {len(own)} s |" in text


def test_the_same_network_by_another_gamma_has_a_table_of_its_own(tmp_path: Path) -> None:
    results = bench(tmp_path).results
    of_paper = [c for c in accurate.cells(SMALL) if c.gamma is None]
    made_up(results, of_paper, ERRORS)
    assert "with a gamma of" not in table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))
    made_up(results, [c for c in accurate.cells(SMALL) if c.gamma], {"blind": [1e-9] * 4, "known": [1e-1] * 4})
    text = table_of(accurate.EXPERIMENT, SMALL, bench(tmp_path))
    rows = text.split("with a gamma of 0.5")[1].splitlines()[2:6]
    assert [row.split(" | ")[:2] for row in rows[2:]] == [["| FC-10 PReLU", "adam"], ["| FC-10 PReLU", "muon"]]
    assert all(row.count("100 / 0") == 6 for row in rows[2:])


def test_pictures_of_real_images_stay_in_the_work_folder(tmp_path: Path) -> None:
    here, one = bench(tmp_path), np.zeros((2, 4, 4, 3), np.uint8)
    save_arrays(here.pictures("near-threshold"), {"mse": np.array([4.5e-4, 4e-4]), "original": one, "recovered": one})
    for scale, place in ((SMALL, "results"), (FULL, "work")):
        paths = draw([EXPERIMENTS["near-threshold"]], scale, here, lambda _: None)
        assert [path.relative_to(tmp_path).parts[0] for path in paths] == [place, place]
    here.pictures("near-threshold").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"near-threshold.npz is damaged"):
        drawn(near_threshold.EXPERIMENT, tmp_path)
