import numpy as np

from recollect.paper.experiments.ddnm import EXPERIMENT, draw
from recollect.paper.scales import SMALL


def test_each_image_has_a_row_damaged_and_a_row_restored() -> None:
    picture = np.zeros((3, 4, 4, 3), np.uint8)
    masks = ("block", "dust")
    arrays = {"original": picture} | {f"{m}/{kind}": picture for m in masks for kind in ("degraded", "estimate")}
    figure = draw(arrays)
    assert len(figure.axes) == 2 * 3 * (len(masks) + 1)


def test_it_needs_a_prior_and_no_training() -> None:
    assert EXPERIMENT.pictures
    assert EXPERIMENT.pictures.needs_prior
    assert EXPERIMENT.fits(SMALL) == []
