"""Sets that are too large for memory, here by a limit of a few bytes: the same images as in memory."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import FullyConnected, Images, InputError, audit, load
from recollect.sources import open_source

VALUES = np.random.default_rng(0).integers(0, 256, (96, 3, 8, 8), np.uint8)


@pytest.fixture(autouse=True)
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_MAX_IN_MEMORY_BYTES", "1000")
    monkeypatch.setenv("RECOLLECT_MAX_PIECE_BYTES", str(4 * 3 * 8 * 8 * 20))  # of 20 images


@pytest.fixture
def array(tmp_path: Path) -> Path:
    np.save(tmp_path / "images.npy", VALUES)
    return tmp_path / "images.npy"


def folder_of(path: Path, images: list[np.ndarray]) -> Path:
    path.mkdir()
    for number, values in enumerate(images):
        Image.fromarray(values).save(path / f"{number:03}.png")
    return path


def test_a_large_array_is_the_same_set_and_is_not_held(array: Path) -> None:
    images, held = load(array), Images.from_uint8(torch.from_numpy(VALUES))
    assert images.hash == held.hash
    assert images.ids == held.ids
    assert torch.equal(images[10:30].pixels, held[10:30].pixels)
    assert torch.equal(images.pixels_at(torch.tensor([95, 3])), held.pixels_at(torch.tensor([95, 3])))
    np.save(array, 255 - VALUES)
    assert torch.equal(images[:2].stored, 255 - held[:2].stored)


def test_a_selection_of_a_large_set_has_the_hash_of_its_pixels(array: Path) -> None:
    assert load(array)[::3].hash == Images.from_uint8(torch.from_numpy(VALUES[::3])).hash


def test_another_process_reads_the_file_itself(array: Path) -> None:
    packed = pickle.dumps(load(array)[40:60])
    assert len(packed) < VALUES[40:60].nbytes
    again = pickle.loads(packed)
    assert torch.equal(again.stored, torch.from_numpy(VALUES[40:60]))
    array.unlink()
    open_source.open_again.cache_clear()
    with pytest.raises(InputError, match=r"There is no file .*put it where all find it"):
        _ = pickle.loads(packed).pixels


def test_another_process_has_another_working_folder(array: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(array.parent)
    packed = pickle.dumps(load("images.npy")[40:60])
    monkeypatch.chdir("/")
    open_source.open_again.cache_clear()
    assert torch.equal(pickle.loads(packed).stored, torch.from_numpy(VALUES[40:60]))


def test_a_folder_is_read_in_place(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pictures", [image.transpose(1, 2, 0) for image in VALUES])
    images = load(folder)
    assert images.hash == Images.from_uint8(torch.from_numpy(VALUES)).hash
    (folder / "050.png").unlink()
    assert len(images[:10].pixels) == 10
    with pytest.raises(InputError, match=r"050\.png"):
        _ = images[50].pixels


def test_grey_pictures_before_colour_ones_become_colour(tmp_path: Path) -> None:
    grey = [image[0] for image in VALUES[:70]]
    folder = folder_of(tmp_path / "pictures", [*grey, *(image.transpose(1, 2, 0) for image in VALUES[70:])])
    images = load(folder)
    expected = np.concatenate([VALUES[:70, :1].repeat(3, 1), VALUES[70:]])
    assert images.hash == Images.from_uint8(torch.from_numpy(expected)).hash
    assert images[0].pixels.shape == (1, 3, 8, 8)


def test_pictures_of_another_size_later_in_a_folder_are_refused(tmp_path: Path) -> None:
    pictures = [image.transpose(1, 2, 0) for image in VALUES]
    folder = folder_of(tmp_path / "pictures", [*pictures[:80], *(picture[:4] for picture in pictures[80:])])
    with pytest.raises(InputError, match="differ in size"):
        load(folder)


def test_values_beyond_the_range_are_refused_wherever_they_are(tmp_path: Path) -> None:
    values = VALUES.astype(np.float32) / 255
    values[90, 0, 0, 0] = np.nan
    np.save(tmp_path / "images.npy", values)
    with pytest.raises(InputError, match="the first in image 90"):
        load(tmp_path / "images.npy")


def test_zeros_and_ones_are_refused_for_the_whole_set_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "bits.npy", VALUES % 2)
    with pytest.raises(InputError, match="only 0 and 1"):
        load(tmp_path / "bits.npy")
    dark_first = VALUES.copy()
    dark_first[:30] %= 2
    np.save(tmp_path / "dark.npy", dark_first)
    assert len(load(tmp_path / "dark.npy")) == 96


def test_an_audit_of_a_set_on_disk_gives_the_numbers_of_one_in_memory(array: Path) -> None:
    model = FullyConnected((3, 8, 8), layers=2, width=16, seed=0)
    unseen = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    on_disk, held = (
        audit(model, train=given, control=unseen, masks="block", methods="iterate,known", gamma=0.5, start="half_kept")
        for given in (array, VALUES)
    )
    for record, expected in zip(on_disk.records, held.records, strict=True):
        assert record.mse == pytest.approx(expected.mse, rel=1e-4)
        assert (record.ids, record.nearest, record.stop) == (expected.ids, expected.nearest, expected.stop)
    assert on_disk.headline == held.headline
    assert on_disk.store.pictures.keys() == held.store.pictures.keys()
