import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.sources import load, svhn
from recollect.sources.address import Address
from tests.sources.conftest import eight_bit

Values = Callable[..., np.ndarray]


@pytest.fixture
def mat(tmp_path: Path, values: Values) -> Callable[..., tuple[Path, np.ndarray]]:
    """A file in the official layout, with as many crops as photo numbers."""

    def make(photos: list[int], *, listed: bool = True) -> tuple[Path, np.ndarray]:
        scipy_io = pytest.importorskip("scipy.io")
        data = values(32, 32, 3, len(photos))
        digits = (np.arange(len(photos), dtype=np.uint8) % 10 + 1)[:, None]
        scipy_io.savemat(tmp_path / "train_32x32.mat", {"X": data, "y": digits})
        if listed:
            (tmp_path / "train_photo_ids.txt").write_text("\n".join(map(str, photos)))
        return tmp_path, data

    return make


def test_one_crop_a_photo_and_the_right_pixels(mat: Callable[..., tuple[Path, np.ndarray]]) -> None:
    photos = sorted([*range(40), *range(0, 40, 2), *range(0, 40, 4)])
    folder, data = mat(photos)
    images = load(f"svhn:{folder}")
    crops = [int(name.removeprefix("train/")) for name in images.ids]
    assert sorted(photos[crop] for crop in crops) == list(range(40))
    assert np.array_equal(eight_bit(images), data[..., crops].transpose(3, 2, 0, 1))


def test_train_and_control_never_share_a_photo(mat: Callable[..., tuple[Path, np.ndarray]]) -> None:
    photos = [i // 3 for i in range(120)]
    folder, _ = mat(photos)
    ids = [load(f"svhn:{folder}?count=20&part={part}").ids for part in ("train", "control")]
    taken = [photos[int(name.removeprefix("train/"))] for name in (*ids[0], *ids[1])]
    assert len(set(taken)) == 40


def test_without_photo_numbers_crops_are_too_far_apart_to_share_one(
    mat: Callable[..., tuple[Path, np.ndarray]],
) -> None:
    folder, data = mat([0] * 50, listed=False)
    images = load(f"svhn:{folder}/train_32x32.mat")
    assert images.ids == tuple(f"train/{crop}" for crop in range(0, 50, 6))
    assert np.array_equal(eight_bit(images), data[..., ::6].transpose(3, 2, 0, 1))


def test_ten_is_the_digit_zero(mat: Callable[..., tuple[Path, np.ndarray]]) -> None:
    folder, _ = mat(list(range(10)))
    assert svhn.list_images(folder, Address("svhn")).labels == [str(d) for d in (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"Z": np.zeros(3)}, "found nothing"),
        ({"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1))}, "found double"),
        ({"X": np.zeros((28, 28, 1, 2), np.uint8), "y": np.ones((2, 1))}, r"shape \(28, 28, 1, 2\)"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.ones((3, 1))}, "y with 2 digits"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8)}, "y with 2 digits"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([["a"], ["b"]], object)}, "other than plain arrays"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.full((2, 1), np.nan)}, "other than the digits"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.full((2, 1), 1j)}, "other than plain arrays"),
    ],
)
def test_other_matlab_files_are_refused(tmp_path: Path, content: dict[str, np.ndarray], sentence: str) -> None:
    pytest.importorskip("scipy.io").savemat(tmp_path / "train_32x32.mat", content)
    with pytest.raises(InputError, match=sentence):
        load(f"svhn:{tmp_path}")


def test_broken_and_missing_files_are_refused(tmp_path: Path, mat: Callable[..., tuple[Path, np.ndarray]]) -> None:
    with pytest.raises(InputError, match="no SVHN file at"):
        load(f"svhn:{tmp_path}")
    folder, _ = mat(list(range(9)))
    file = folder / "train_32x32.mat"
    whole = file.read_bytes()
    for broken in (b"", b"hello", whole[:100], whole[:5000], whole[:128] + b"\xff" * 64 + whole[192:]):
        file.write_bytes(broken)
        with pytest.raises(InputError, match=r"train_32x32.mat is"):
            load(f"svhn:{folder}")


@pytest.mark.parametrize(
    ("text", "sentence"), [("1\n2", "2 photo numbers for the 9 crops"), ("one", "one photo number")]
)
def test_a_wrong_list_of_photos_is_refused(
    mat: Callable[..., tuple[Path, np.ndarray]], text: str, sentence: str
) -> None:
    folder, _ = mat(list(range(9)))
    (folder / "train_photo_ids.txt").write_text(text)
    with pytest.raises(InputError, match=sentence):
        load(f"svhn:{folder}")


def test_without_scipy_it_says_so(mat: Callable[..., tuple[Path, np.ndarray]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = mat([1])
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(InputError, match="needs scipy"):
        load(f"svhn:{folder}")


def test_the_real_file(shared: Callable[[str], Path]) -> None:
    folder = shared("svhn")
    photos = (folder / "train_photo_ids.txt").read_text().split()
    train, control = (load(f"svhn:{folder}?count=50&part={part}") for part in ("train", "control"))
    assert train.shape == (3, 32, 32)
    assert len({photos[int(name.removeprefix("train/"))] for name in (*train.ids, *control.ids)}) == 100
    assert max(photos.count(photo) for photo in set(photos)) <= 6  # what reading without the list relies on
    assert photos == sorted(photos, key=int)
