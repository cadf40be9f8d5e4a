from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect import InputError
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import EXPERIMENTS, near_threshold
from recollect.paper.render.figures import draw
from recollect.paper.run import run
from recollect.paper.scales import FULL, SMALL
from recollect.records import save_arrays
from tests.paper.making import IMAGES, SHORT_SCALE, make_workspace, records_alone


def test_pictures_of_real_images_stay_in_the_work_folder(tmp_path: Path) -> None:
    here, picture = records_alone(tmp_path), np.zeros((2, 4, 4, 3), np.uint8)
    save_arrays(
        here.pictures("near-threshold"), {"mse": np.array([4.5e-4, 4e-4]), "original": picture, "recovered": picture}
    )
    real = replace(FULL, shown={})
    for scale, folder in ((SMALL, "results"), (FULL, "results"), (real, "work")):
        paths = draw([EXPERIMENTS["near-threshold"]], scale, here, lambda _: None)
        assert [path.relative_to(tmp_path).parts[0] for path in paths] == [folder]
    here.pictures("near-threshold").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"near-threshold.npz is damaged"):
        draw([near_threshold.EXPERIMENT], SMALL, here, lambda _: None)


def test_without_a_recovery_below_the_threshold_there_is_no_picture(tmp_path: Path) -> None:
    here, barely_trained = make_workspace(tmp_path), {"fc20": 1}
    scale = replace(SHORT_SCALE, few={"fc20": IMAGES}, width={"fc20": 32}, seconds={"fc20": 600}, steps=barely_trained)
    fit = near_threshold.fit(scale)
    assert run([Experiment("trained", "", "", trainings=lambda _: [fit])], scale, here)
    arrays = near_threshold.compute(here, scale, fit)
    save_arrays(here.pictures("near-threshold"), arrays)
    assert (arrays, draw([EXPERIMENTS["near-threshold"]], scale, here, lambda _: None)) == ({}, [])
