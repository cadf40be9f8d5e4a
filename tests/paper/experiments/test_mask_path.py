from pathlib import Path

import numpy as np

from recollect.records import load_arrays
from tests.paper.making import check_pictures, make_workspace


def test_pictures_are_computed_once_and_drawn_and_the_truth_is_the_mask(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    check_pictures("mask-path", workspace)
    arrays = load_arrays(workspace.pictures("mask-path"))
    assert sorted({key.split("/")[1] for key in arrays}) == ["block", "dust"]
    truth = arrays["truth/block"]
    assert truth.shape == (8, 8)
    assert np.array_equal(truth == 0, (arrays["degraded/block"] == 0).all(-1) | (truth == 0))
    assert (truth == 0).mean() == 0.25
    assert arrays["estimates/block"].shape[1:] == (8, 8)
