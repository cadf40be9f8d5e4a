import os
import pickle
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.sources import cifar10, load
from recollect.sources.address import Address
from tests.sources.conftest import eight_bit, python2_batch

Cifar = tuple[Path, np.ndarray]
Values = Callable[..., np.ndarray]


def test_all_training_batches_are_read_and_the_test_batch_is_not(cifar: Cifar) -> None:
    folder, data = cifar
    images = load(f"cifar10:{folder}")
    assert np.array_equal(eight_bit(images), data)
    assert images.ids[0] == "data_batch_1/0"
    assert images.ids[-1] == "data_batch_2/19"
    assert images.pixels.dtype.is_floating_point


def test_ids_and_pixels_belong_together_in_a_draw(cifar: Cifar) -> None:
    folder, data = cifar
    images = load(f"cifar10:{folder}?count=17&seed=3")
    for position, name in enumerate(images.ids):
        batch, row = name.removeprefix("data_batch_").split("/")
        assert np.array_equal(eight_bit(images)[position], data[20 * (int(batch) - 1) + int(row)])


def test_per_class_is_balanced(cifar: Cifar) -> None:
    for part in ("train", "control"):
        images = load(f"cifar10:{cifar[0]}?per-class=2&part={part}")
        assert Counter(int(name.split("/")[1]) % 10 for name in images.ids) == dict.fromkeys(range(10), 2)


def test_folder_its_parent_one_batch_and_the_archive_are_the_same(cifar: Cifar, tmp_path: Path) -> None:
    folder, _ = cifar
    archive = tmp_path / "elsewhere" / "cifar-10-python.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "cifar-10-batches-py")
    expected = load(f"cifar10:{folder}").hash
    for path in (folder.parent, archive, archive.parent):
        assert load(f"cifar10:{path}").hash == expected, path
    assert load(f"cifar10:{folder}/data_batch_2").hash == load(f"cifar10:{folder}")[20:].hash


def test_nothing_of_a_hostile_archive_is_written_or_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "it ran"),)

    inner = tmp_path / "inner"
    inner.write_bytes(pickle.dumps({b"data": Runs(), b"labels": []}, 2))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(inner, "../../data_batch_1")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="data_batch_1 is refused"):
        load(f"cifar10:{tmp_path}/a.tar.gz")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (pickle.dumps([1, 2]), "expected 'data' of N x 3072 bytes, got NoneType"),
        (pickle.dumps({"data": np.zeros((2, 12), np.uint8), "labels": [0, 1]}), r"got \(2, 12\)"),
        (pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [0]}), "2 'labels' from 0 to 9"),
        (pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 10]}), "2 'labels' from 0 to 9"),
        (b"nonsense", "data_batch_1 is not a readable pickle"),
    ],
)
def test_what_is_no_batch_is_refused_by_name(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(InputError, match=expected):
        load(f"cifar10:{tmp_path}")


def test_a_huge_batch_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "data_batch_1").open("wb") as file:
        file.truncate(200_000_000)  # takes no room on disk
    with pytest.raises(InputError, match="200,000,000 bytes long"):
        load(f"cifar10:{tmp_path}")


def test_missing_empty_and_broken_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no .*nowhere"):
        load(f"cifar10:{tmp_path}/nowhere")
    with pytest.raises(InputError, match="holds no CIFAR-10 batch"):
        load(f"cifar10:{tmp_path}")
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"\x1f\x8b\x08half")
    with pytest.raises(InputError, match="not a readable tar archive"):
        load(f"cifar10:{tmp_path}")


def test_a_truncated_archive_is_refused(cifar: Cifar, tmp_path: Path) -> None:
    archive = tmp_path / "cut.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cifar[0], "cifar-10-batches-py")
    archive.write_bytes(archive.read_bytes()[:-20_000])
    with pytest.raises(InputError, match="not a readable tar archive"):
        load(f"cifar10:{archive}")


def test_the_real_batch(shared: Callable[[str], Path]) -> None:
    images = load(f"cifar10:{shared('cifar-10-batches-py')}?per-class=100")
    assert (len(images), images.shape) == (1000, (3, 32, 32))
    assert 0.4 < float(images.pixels.mean()) < 0.55
    control = load(f"cifar10:{shared('cifar-10-batches-py')}?per-class=100&part=control")
    assert not set(images.ids) & set(control.ids)


def test_labels_are_the_official_names(tmp_path: Path, values: Values) -> None:
    (tmp_path / "data_batch_1").write_bytes(python2_batch(values(2, 3072), [6, 9]))
    assert cifar10.list_images(tmp_path, Address("cifar10")).labels == ["frog", "truck"]
