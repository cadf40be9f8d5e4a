import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from recollect.duplicates import find_duplicates
from recollect.errors import InputError
from recollect.images.decoding import decode
from recollect.sources import load, photos, split
from recollect.sources.address import Address
from recollect.sources.base import Catalogue
from tests.sources.conftest import eight_bit

pytest.importorskip("skimage", reason="scikit-image, which brings the photographs, is not installed")


@cache
def listed(size: int) -> Catalogue:
    return photos.list_images(Path(), Address("photos", size=size))


def square(name: str) -> tuple[str, int, int, int]:
    found = re.fullmatch(r"(\w+)/x(\d+)y(\d+)s(\d+)", name)
    assert found, name
    return found[1], *(int(number) for number in found.groups()[1:])  # type: ignore[return-value]


@pytest.mark.parametrize("size", [8, 31, 32, 64])
def test_no_control_crop_shares_a_pixel_with_a_train_crop(size: int) -> None:
    covered: dict[str, dict[str, np.ndarray]] = {}
    catalogue = listed(size)
    assert catalogue.parts is not None
    for name, side in zip(catalogue.ids, catalogue.parts, strict=True):
        photograph, x, y, width = square(name)
        maps = covered.setdefault(photograph, {part: np.zeros((1000, 1000), bool) for part in ("train", "control")})
        maps[side][y : y + width, x : x + width] = True
    assert len(covered) == len(photos.PHOTOGRAPHS)
    for photograph, maps in covered.items():
        assert maps["train"].any(), photograph
        assert maps["control"].any(), photograph
        assert not (maps["train"] & maps["control"]).any(), photograph
        columns = [np.flatnonzero(part.any(axis=0)) for part in maps.values()]
        left, right = sorted(columns, key=lambda some: int(some[0]))
        assert right[0] - left[-1] > photos.GAP, photograph


@pytest.mark.parametrize("size", [8, 32, 64])
def test_there_are_thousands_of_distinct_crops_for_each_part(size: int) -> None:
    catalogue = listed(size)
    assert catalogue.parts is not None
    assert min(Counter(catalogue.parts).values()) >= 2000
    assert len(set(catalogue.ids)) == len(catalogue.ids)


def test_a_crop_is_the_average_of_the_square_its_id_names() -> None:
    images = load("photos?count=30&size=16")
    for position, name in enumerate(images.ids):
        photograph, x, y, width = square(name)
        file = next(f for f in photos.PHOTOGRAPHS if f.startswith(photograph))
        whole = decode(photos.photograph_path(file), file)[:, y : y + width, x : x + width]
        factor = width // 16
        means = whole.reshape(3, 16, factor, 16, factor).mean(axis=(2, 4))
        assert np.array_equal(eight_bit(images)[position], np.floor(means + 0.5)), name


def test_flat_crops_are_left_out() -> None:
    values = np.zeros((3, 32, 64), np.uint8)
    values[:, :, 40:] = np.random.default_rng(0).integers(0, 256, (3, 32, 24))
    corners = photos.Region("x", "train", 0, 1, values).corners(8)
    assert corners[:, 1].min() >= 34  # windows of 8 that end before the noise are flat
    assert {tuple(corner) for corner in corners.tolist()} >= {(row, 48) for row in range(0, 25, 2)}
    images = load("photos?count=2000&size=32")
    assert float(images.pixels.std((2, 3)).square().mean(1).sqrt().min()) > 0.075


def test_running_sums_are_sums() -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, 11, 9))
    sums = photos.window_sums(values, 4, 2)
    assert sums.shape == (3, 4, 3)
    for row in range(4):
        for column in range(3):
            window = values[:, 2 * row : 2 * row + 4, 2 * column : 2 * column + 4]
            assert np.array_equal(sums[:, row, column], window.sum(axis=(1, 2)))


def test_the_default_needs_no_parameters_and_is_always_the_same() -> None:
    images = load("photos")
    assert (len(images), images.shape) == (50, (3, 32, 32))
    assert images.hash == load("photos?count=50&size=32&seed=42&part=train").hash
    assert images.hash.startswith("b785ca706cd0")


def test_photographs_take_turns() -> None:
    images = load(f"photos?count={5 * len(photos.PHOTOGRAPHS)}&part=control")
    assert set(Counter(name.split("/")[0] for name in images.ids).values()) == {5}


def test_default_sets_have_no_duplicates() -> None:
    made = split("photos?count=600")
    assert not find_duplicates(made.train, made.control)


@pytest.mark.parametrize("size", range(photos.SMALLEST, photos.LARGEST + 1))
def test_every_size_has_crops_of_several_scales(size: int) -> None:
    sides = [factor * size for factor in photos.factors(size)]
    assert len(sides) >= 2
    assert sides[0] >= 48
    assert sides[-1] <= 192


@pytest.mark.parametrize("size", [7, 65, 1000])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"from 8 to 64, got size={size}"):
        load(f"photos?size={size}")


def test_too_many_are_refused_with_how_many_there_are() -> None:
    with pytest.raises(InputError, match=r"it can have \d{4} at most"):
        load("photos?count=100000")


def test_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr("socket.socket.connect", refuse)
    load("photos?count=1")


def test_without_scikit_image_or_a_file_of_it_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"This scikit-image comes without nowhere.png"):
        photos.photograph_path("nowhere.png")
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(InputError, match="pip install scikit-image"):
        load("photos")
