import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.images.pil_images import pil_values


def picture(mode: str) -> Image.Image:
    values = np.random.default_rng(3).integers(0, 256, (8, 8, 3), np.uint8)
    return Image.fromarray(values).convert(mode)


@pytest.mark.parametrize(("mode", "shape"), [("L", (8, 8)), ("1", (8, 8)), ("RGB", (8, 8, 3)), ("P", (8, 8, 3))])
def test_values_are_those_of_the_mode_that_shows_them(mode: str, shape: tuple[int, ...]) -> None:
    values = pil_values(picture(mode))
    assert (values.dtype, values.shape) == (np.uint8, shape)
    assert np.array_equal(values, np.asarray(picture(mode).convert("L" if len(shape) == 2 else "RGB")))


def test_colours_multiplied_by_alpha_are_divided_again() -> None:
    image = picture("RGB").convert("RGBA").convert("RGBa")
    assert np.array_equal(pil_values(image), np.asarray(picture("RGB")))


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
def test_a_transparent_colour_is_refused(mode: str) -> None:
    image = picture(mode)
    image.info["transparency"] = image.getpixel((0, 0))
    with pytest.raises(InputError, match="partly transparent"):
        pil_values(image)
