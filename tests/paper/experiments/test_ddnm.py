import numpy as np

from recollect.paper.experiments.ddnm import EXPERIMENT, draw
from recollect.paper.scales import SMALL


def test_each_image_has_a_row_damaged_and_a_row_restored() -> None:
    picture = np.zeros((3, 4, 4, 3), np.uint8)
    masks = ("block", "dust")
    kinds = ("degraded", "ddnm", "biharmonic")
    figure = draw({"original": picture} | {f"{mask}/{kind}": picture for mask in masks for kind in kinds})
    assert len(figure.axes) == 3 * 3 * (len(masks) + 1)


def test_it_needs_a_prior_and_no_training() -> None:
    assert EXPERIMENT.pictures
    assert EXPERIMENT.pictures.needs_prior
    assert EXPERIMENT.fits(SMALL) == []
