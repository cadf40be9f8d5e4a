"""Sprite sheets hold every pixel, and the budget holds."""

import io

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.report import gallery, rounds
from recollect.report.sprites import Sheet, errors, masks, pictures


def tiles_of(sheet: Sheet, count: int, side: int) -> np.ndarray:
    page = np.asarray(Image.open(io.BytesIO(sheet.png)).convert("RGB"))
    places = [divmod(i, sheet.columns) for i in range(count)]
    return np.stack([page[r * side : (r + 1) * side, c * side : (c + 1) * side] for r, c in places])


@pytest.mark.parametrize("count", [1, 2, 7, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_come_back_as_they_went_in(count: int, channels: int) -> None:
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


def test_pictures_beyond_the_budget_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 3), np.uint8)
    arrays = {"original/train": (noise, pictures)}
    assert gallery._step(arrays) == 1
    monkeypatch.setattr(gallery, "GALLERY_BYTES", noise.nbytes // 3)
    step = gallery._step(arrays)
    assert step in (3, 4)
    assert len(pictures(noise[::step]).png) <= noise.nbytes // 3 * 1.05


def test_rounds_are_thinned_from_the_end() -> None:
    assert rounds._kept_rounds(5, 8) == [0, 1, 2, 3, 4]
    kept = rounds._kept_rounds(1000, 20)
    assert kept[:3] == [0, 1, 2] or kept[:2] == [0, 1]
    assert kept[-1] == 999
    assert len(kept) <= 20
