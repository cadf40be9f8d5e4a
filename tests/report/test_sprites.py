"""Sprite sheets hold every pixel."""

import io

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.report.sprites import Sheet, errors, masks, pictures


def tiles_of(sheet: Sheet, count: int, side: int) -> np.ndarray:
    page = np.asarray(Image.open(io.BytesIO(sheet.png)).convert("RGB"))
    positions = [divmod(number, sheet.columns) for number in range(count)]
    return np.stack([page[r * side : (r + 1) * side, c * side : (c + 1) * side] for r, c in positions])


@pytest.mark.parametrize("count", [1, 2, 7, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_keep_every_value(count: int, channels: int) -> None:
    tiles = np.random.default_rng(0).integers(0, 256, (count, 5, 5, channels), np.uint8)
    assert (tiles_of(pictures(tiles), count, 5) == np.broadcast_to(tiles, (count, 5, 5, 3))).all()


def test_masks_keep_their_levels() -> None:
    levels = np.array([0, 85, 170, 255], np.uint8)
    for tiles in (np.random.default_rng(0).choice(levels, (3, 6, 6)), np.zeros((3, 6, 6), np.uint8)):
        assert (tiles_of(masks(tiles), 3, 6)[..., 0] == tiles).all()
    black_and_white = np.random.default_rng(0).choice(levels[[0, 3]], (3, 6, 6))
    assert (tiles_of(masks(black_and_white), 3, 6)[..., 0] == black_and_white).all()


def test_error_maps_grow_lighter_with_the_error() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    drawn = tiles_of(errors(ramp), 1, 16)[0].reshape(256, 3).astype(float)
    brightness = drawn @ [0.299, 0.587, 0.114]
    assert (np.diff(brightness) > -1).all()
    assert brightness[0] < 5
    assert brightness[-1] > 240


def test_other_arrays_are_refused() -> None:
    for wrong in (np.zeros((2, 4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((0, 4, 4), np.uint8)):
        with pytest.raises(InputError, match="8-bit"):
            pictures(wrong)
