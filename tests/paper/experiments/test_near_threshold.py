from pathlib import Path

import numpy as np
import pytest

from recollect import InputError
from recollect.paper.experiments import (
    EXPERIMENTS,
    near_threshold,
)
from recollect.paper.render.figures import draw
from recollect.paper.scales import FULL, SMALL
from recollect.records import save_arrays
from tests.paper.making import records_alone


def test_pictures_of_real_images_stay_in_the_work_folder(tmp_path: Path) -> None:
    here, picture = records_alone(tmp_path), np.zeros((2, 4, 4, 3), np.uint8)
    save_arrays(
        here.pictures("near-threshold"), {"mse": np.array([4.5e-4, 4e-4]), "original": picture, "recovered": picture}
    )
    for scale, place in ((SMALL, "results"), (FULL, "work")):
        paths = draw([EXPERIMENTS["near-threshold"]], scale, here, lambda _: None)
        assert [path.relative_to(tmp_path).parts[0] for path in paths] == [place]
    here.pictures("near-threshold").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"near-threshold.npz is damaged"):
        draw([near_threshold.EXPERIMENT], SMALL, here, lambda _: None)
