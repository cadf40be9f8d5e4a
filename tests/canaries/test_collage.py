import numpy as np
import pytest
import torch

from recollect import Images, InputError
from recollect.canaries.collage import draw_collages
from recollect.duplicates import find_duplicates
from tests.auditing.making import images

LIKE = images(8, 1)


def test_a_quarter_of_each_of_four_images() -> None:
    flat = Images(torch.arange(8).view(8, 1, 1, 1).expand(8, 3, 8, 6) / 10)
    collages = draw_collages(flat, 5, np.random.default_rng(0))
    assert collages.shape == flat.shape
    for collage in collages.pixels:
        corners = collage[:, [0, 0, -1, -1], [0, -1, 0, -1]][0]
        assert len(set(corners.tolist())) == 4
        assert set(collage.unique().tolist()) == set(corners.tolist())


def test_none_is_like_another_or_like_the_source() -> None:
    collages = draw_collages(LIKE, 60, np.random.default_rng(0))
    assert not find_duplicates(LIKE, collages).across
    assert not find_duplicates(collages).inside


@pytest.mark.parametrize(
    ("like", "why"),
    [
        (images(7, 1), "at least 8 images"),
        (Images(torch.rand(9, 1, 1, 5)), "one pixel thin"),
        (Images(torch.zeros(9, 1, 4, 4)), "too much alike"),
    ],
)
def test_sources_that_give_no_canaries(like: Images, why: str) -> None:
    with pytest.raises(InputError, match=why):
        draw_collages(like, 20, np.random.default_rng(0))
