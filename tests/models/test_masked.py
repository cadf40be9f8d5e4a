import pytest
import torch

from recollect.models.masked import ranks_of_passes


@pytest.mark.parametrize(("patches", "shown"), [(16, 4), (196, 49), (16, 12), (16, 8), (9, 2), (10, 7), (4, 1), (2, 1)])
def test_every_patch_is_shown_and_hidden(patches: int, shown: int) -> None:
    visible = ranks_of_passes(patches, shown) < shown
    assert bool((visible.sum(1) == shown).all())  # in each pass as many as in training
    assert bool(visible.any(0).all())
    assert bool((~visible).any(0).all())
    assert len(visible) == -(-patches // min(shown, patches - shown))


def test_the_masks_are_fixed() -> None:
    assert torch.equal(ranks_of_passes(16, 4), ranks_of_passes(16, 4))
