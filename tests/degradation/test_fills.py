"""What erased pixels hold is known to whoever degrades, and makes no difference to what is kept."""

import pytest
import torch

from recollect import Erasure, Images, InputError, mask, observe
from recollect.degradation import FILLS, Filled, fill_erased

IMAGES = Images(torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
HALF = mask("half", IMAGES.shape)


def filled(kind: str, images: Images = IMAGES, seed: int = 42) -> torch.Tensor:
    return observe(images, fill_erased(HALF, images, kind, seed)).y


@pytest.mark.parametrize("kind", FILLS)
def test_kept_pixels_are_those_of_the_image(kind: str) -> None:
    y = filled(kind)
    assert torch.equal(y[:, :, :4], IMAGES.pixels[:, :, :4])
    assert not torch.equal(y[:, :, 4:], IMAGES.pixels[:, :, 4:])
    assert ((y >= 0) & (y <= 1)).all()


def test_each_fill_is_what_it_says() -> None:
    assert (filled("zero")[:, :, 4:] == 0).all()
    colours = filled("constant")[:, :, 4:].flatten(2)
    assert (colours == colours[..., :1]).all()
    assert len(colours[:, 0, 0].unique()) == 5  # another one for each image
    assert len(filled("noise")[:, :, 4:].unique()) > 400
    assert torch.equal(filled("images")[0, :, 4:], IMAGES.pixels[1].flip(1, 2)[:, 4:])


@pytest.mark.parametrize("kind", ["constant", "noise"])
def test_a_draw_belongs_to_its_image(kind: str) -> None:
    assert torch.equal(filled(kind, IMAGES[2:4]), filled(kind)[2:4])
    assert not torch.equal(filled(kind, seed=1), filled(kind))


def test_every_fill_says_what_it_is() -> None:
    assert all(fill.name == name and fill.summary for name, fill in FILLS.items())


def test_zero_is_the_paper_s_erasure_itself() -> None:
    assert fill_erased(HALF, IMAGES, "zero") is HALF


def test_the_data_step_is_that_of_the_same_mask_and_some_images_can_be_taken() -> None:
    truth = fill_erased(HALF, IMAGES, "noise")
    y, z = filled("noise"), torch.rand(IMAGES.pixels.shape)
    assert torch.equal(truth.prox(z, y, 0.5), HALF.expand(y).prox(z, y, 0.5))
    assert torch.equal(truth[1:3].apply(z[1:3]), truth.apply(z)[1:3])
    assert torch.equal(truth.refit(IMAGES.pixels, y).keep, HALF.expand(y).keep)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="no fill 'black'; choose from zero, constant, noise, images"):
        fill_erased(HALF, IMAGES, "black")
    with pytest.raises(InputError, match="1 masks need as many fills"):
        Filled(HALF.keep, torch.zeros(2, 3, 8, 8))
    assert isinstance(fill_erased(HALF, IMAGES, "noise"), Erasure)
