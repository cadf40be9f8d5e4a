import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from recollect.errors import InputError
from recollect.sources import load
from tests.sources.conftest import eight_bit, kept_as_bytes

Values = Callable[..., np.ndarray]


def test_eight_bit_values_stay_eight_bit(tmp_path: Path, values: Values) -> None:
    data = values(6, 3, 5, 4)
    np.save(tmp_path / "a.npy", data)
    images = load(f"array:{tmp_path}/a.npy")
    assert kept_as_bytes(images)
    assert np.array_equal(eight_bit(images), data)
    assert images.ids == ("0", "1", "2", "3", "4", "5")


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f4"])
def test_floats_are_kept_as_they_are(tmp_path: Path, values: Values, kind: str) -> None:
    data = (values(4, 1, 5, 4) / 256).astype(kind)
    np.save(tmp_path / "a.npy", data)
    images = load(f"{tmp_path}/a.npy")
    assert np.array_equal(images.pixels.numpy(), data)


def test_all_three_kinds_of_file_hold_the_same(tmp_path: Path, values: Values) -> None:
    save_file = pytest.importorskip("safetensors.torch").save_file
    data = values(6, 3, 5, 4)
    np.save(tmp_path / "a.npy", data)
    np.savez(tmp_path / "a.npz", data)
    np.savez_compressed(tmp_path / "b.npz", images=data, labels=np.arange(6))
    save_file({"x": torch.from_numpy(data), "y": torch.zeros(1)}, tmp_path / "a.safetensors")
    hashes = {load(f"{tmp_path}/{spec}").hash for spec in ("a.npy", "a.npz", "b.npz", "a.safetensors?key=x")}
    assert len(hashes) == 1


def test_channels_may_stand_last_or_be_missing(tmp_path: Path, values: Values) -> None:
    data = values(6, 5, 4, 3)
    np.save(tmp_path / "a.npy", data)
    assert np.array_equal(eight_bit(load(f"{tmp_path}/a.npy")), data.transpose(0, 3, 1, 2))
    np.save(tmp_path / "b.npy", data[..., 0])
    assert np.array_equal(eight_bit(load(f"{tmp_path}/b.npy")), data[:, None, :, :, 0])


def test_a_draw_and_a_size(tmp_path: Path, values: Values) -> None:
    data = values(50, 3, 8, 8)
    np.save(tmp_path / "a.npy", data)
    images = load(f"{tmp_path}/a.npy?count=7&seed=2")
    assert np.array_equal(eight_bit(images), data[[int(i) for i in images.ids]])
    assert load(f"{tmp_path}/a.npy?size=4").shape == (3, 4, 4)
    with pytest.raises(InputError, match="size=9 is larger"):
        load(f"{tmp_path}/a.npy?size=9")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.zeros(3072, np.uint8), r"shape \(3072,\) does not hold images; expected N x C x H x W"),
        (
            np.zeros((3, 8, 8), np.uint8),
            r"Shape \(3, 8, 8\) looks like one image; .* in a file np\.save\(FILE, pixels\[None\]\)",
        ),
        (np.zeros((0, 3, 8, 8), np.uint8), r"shape \(0, 3, 8, 8\)"),
        (np.ones((2, 1, 8, 8), np.uint8), "only 0 and 1"),
        (np.zeros((2, 1, 8, 8), np.int64), "holds int64"),
        (np.zeros((2, 1, 8, 8), bool), "holds bool"),
        (np.full((2, 1, 8, 8), 200.0), r"a file takes \?range=0,255"),
        (np.full((2, 1, 8, 8), -0.5), r"a file takes \?range=-1,1"),
        (np.full((2, 1, 8, 8), np.nan), "must be finite"),
        (np.full((2, 5, 8, 8), 0.5), "1 or 3 channels"),
    ],
)
def test_other_arrays_are_refused_by_name(tmp_path: Path, data: np.ndarray, expected: str) -> None:
    np.save(tmp_path / "a.npy", data)
    with pytest.raises(InputError, match=rf"a.npy.*{expected}"):
        load(f"array:{tmp_path}/a.npy")


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", images=np.array([{}], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match=rf"{name} cannot be read \(.*(pickle|Python objects)"):
            load(f"{tmp_path}/{name}")


def test_the_array_meant_must_be_said_when_there_are_several(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(1), y=np.zeros(1))
    with pytest.raises(InputError, match="arrays x, y; add key=NAME"):
        load(f"{tmp_path}/a.npz")
    with pytest.raises(InputError, match=r"a\.npz has no array 'z'; it holds x, y"):
        load(f"{tmp_path}/a.npz?key=z")
    np.save(tmp_path / "a.npy", np.zeros((2, 1, 4, 4)))
    with pytest.raises(InputError, match="leave key=x out"):
        load(f"{tmp_path}/a.npy?key=x")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors"])
@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY\x01\x00", b"PK\x03\x04" + bytes(40), b"\xff" * 64])
def test_broken_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    if name.endswith("safetensors"):
        pytest.importorskip("safetensors")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        load(f"{tmp_path}/{name}")


def test_a_header_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 1, 8, 8), np.uint8))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole.replace(b"(2, 1, 8, 8), }    ", b"(2, 1, 8, 800), }  "))
    with pytest.raises(InputError, match=r"a.npy cannot be read"):
        load(f"{tmp_path}/a.npy")


def test_wrong_names_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        load(f"{tmp_path}/nowhere.npy")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"expected one of .npy, .npz, .safetensors"):
        load(f"array:{tmp_path}/a.txt")
    np.savez(tmp_path / "a.npz", np.zeros(1))
    (tmp_path / "b.npy").write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(InputError, match=r"b.npy cannot be read"):
        load(f"{tmp_path}/b.npy")
    np.save(tmp_path / "c.npy", np.zeros(1))
    (tmp_path / "c.npz").write_bytes((tmp_path / "c.npy").read_bytes())
    with pytest.raises(InputError, match=r"rename it to .npy"):
        load(f"{tmp_path}/c.npz")


def test_without_safetensors_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(InputError, match="needs safetensors"):
        load(f"{tmp_path}/a.safetensors")


def test_a_black_image_is_no_mistake(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 1, 4, 4), np.uint8))
    assert float(load(f"array:{tmp_path / 'a.npy'}").pixels.max()) == 0


def test_an_entry_of_a_npz_that_is_no_array_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "images.npz", "w") as archive:
        archive.writestr("images", b"not an array")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "images.npz")
