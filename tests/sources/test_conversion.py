from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect import InputError, load
from recollect.sources.conversion import Conversion, to_grey
from recollect.sources.resize import to_square
from tests.sources.conftest import eight_bit

Values = Callable[..., np.ndarray]


def test_grey_is_pillows(values: Values) -> None:
    colour = values(3, 40, 40)
    expected = np.asarray(Image.fromarray(colour.transpose(1, 2, 0)).convert("L"))
    assert np.array_equal(to_grey(colour)[0], expected)
    assert np.allclose(to_grey((colour / 255).astype(np.float32))[0], expected / 255, atol=1 / 255)
    assert to_grey(np.ones((3, 2, 2), np.float32)).max() <= 1


def test_many_are_as_one_by_one(values: Values) -> None:
    many, convert = values(300, 3, 6, 6), Conversion(size=4, grey=True)
    assert np.array_equal(convert.all(many), np.stack([to_square(to_grey(one), 4) for one in many]))


def test_what_is_as_asked_for_stays(values: Values) -> None:
    images = values(2, 1, 4, 6)
    assert Conversion(resize=(6, 4), grey=True).all(images) is images
    assert Conversion().all(images) is images


def test_signals_are_not_converted(values: Values) -> None:
    with pytest.raises(InputError, match="size, resize and grey are for images"):
        Conversion(grey=True).all(values(2, 1, 4))


def test_a_folder_of_different_sizes_is_resized_and_grey(tmp_path: Path, values: Values) -> None:
    for name, shape in (("a.png", (9, 7, 3)), ("b.png", (5, 5))):
        Image.fromarray(values(*shape)).save(tmp_path / name)
    images = load(f"{tmp_path}?resize=6x4&grey=1")
    assert images.shape == (1, 4, 6)
    assert images.name.endswith("?resize=6x4&grey=1&bad=refuse")
    assert load(images.name).hash == images.hash


def test_every_source_converts(cifar: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    folder, values = cifar
    assert np.array_equal(eight_bit(load(f"cifar10:{folder}?grey=1")), to_grey(values))
    np.save(tmp_path / "a.npy", values)
    assert load(f"{tmp_path}/a.npy?resize=8").shape == (3, 8, 8)
