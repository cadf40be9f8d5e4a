"""CIFAR-10: the official python batches, as the folder or as the archive they come in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.sources import safe_pickle
from recollect.sources.address import Address
from recollect.sources.base import Archive, Catalogue, Progress, Source
from recollect.sources.tar import read_tar

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FOLDER, ARCHIVE = "cifar-10-batches-py", "cifar-10-python.tar.gz"
_BATCH = re.compile(r"data_batch_[0-9]+")  # the training images; test_batch is not part of the set
_MOST_BYTES = 100_000_000  # an official batch is 31 MB
_VALUES = 3 * 32 * 32


def list_images(path: Path, _address: Address) -> Catalogue:
    """List the images of the training batches under path; ids are data_batch_K/ROW."""
    ids: list[str] = []
    labels: list[str] = []
    rows: list[np.ndarray] = []
    for name, content in _batches(path):
        values, classes = _parse(content, name)
        batch = Path(name).name
        ids += [f"{batch}/{row}" for row in range(len(values))]
        labels += [CLASSES[c] for c in classes]
        rows.append(values)
    if not rows:
        raise InputError(f"{path} holds no CIFAR-10 batch; expected files data_batch_1, data_batch_2 and so on.")
    return Catalogue(ids, lambda positions, progress: _read(rows, positions, progress), labels)


def _batches(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each batch, in order."""
    path = _find(path)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if _BATCH.fullmatch(p.name) and p.is_file())
        for file in files:
            _check_size(str(file), file.stat().st_size)
            yield str(file), file.read_bytes()
    elif not path.is_file():
        raise InputError(f"{path} is neither a folder nor a file; expected {FOLDER} or {ARCHIVE}.")
    elif _BATCH.fullmatch(path.name):
        _check_size(str(path), path.stat().st_size)
        yield str(path), path.read_bytes()
    else:
        yield from _archived(path)


def _find(path: Path) -> Path:
    """Find the folder of batches or the archive: path itself, or its official name inside path."""
    if not path.exists():
        raise InputError(f"There is no {path}; expected the folder {FOLDER} or the file {ARCHIVE}.")
    inside = [path / name for name in (FOLDER, ARCHIVE) if path.is_dir() and (path / name).exists()]
    return inside[0] if inside else path


def _archived(path: Path) -> Iterator[tuple[str, bytes]]:
    """Read the batches inside the archive; nothing is ever unpacked to disk."""
    batches = read_tar(path, lambda name: bool(_BATCH.fullmatch(name)), _MOST_BYTES)
    for batch in sorted(batches):
        yield f"{path}/{batch}", batches[batch]


def _check_size(name: str, size: int) -> None:
    if size > _MOST_BYTES:
        raise InputError(f"{name} is {size:,} bytes long, and an official batch 31 million; it is not opened.")


def _parse(content: bytes, name: str) -> tuple[np.ndarray, list[int]]:
    """Return rows of 3,072 bytes, and the class of each."""
    loaded = safe_pickle.load(content, name)
    values, labels = _entry(loaded, "data"), _entry(loaded, "labels")
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.shape[1] != _VALUES:
        raise InputError(f"{name} is no CIFAR-10 batch: expected 'data' of N x {_VALUES} bytes, got {_shape(values)}.")
    if not isinstance(labels, list) or len(labels) != len(values) or not all(_is_class(c) for c in labels):
        raise InputError(f"{name} is no CIFAR-10 batch: expected {len(values)} 'labels' from 0 to 9.")
    return values, labels


def _entry(batch: object, key: str) -> object:
    """Return an entry of a batch; the official ones, written by Python 2, have keys of bytes."""
    if not isinstance(batch, dict):
        return None
    return batch.get(key.encode(), batch.get(key))


def _is_class(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < len(CLASSES)


def _shape(values: object) -> str:
    return str(values.shape) if isinstance(values, np.ndarray) else type(values).__name__


def _read(rows: list[np.ndarray], positions: np.ndarray, progress: Progress) -> np.ndarray:
    result = np.empty((len(positions), _VALUES), np.uint8)
    start = 0
    for batch in rows:
        here = (positions >= start) & (positions < start + len(batch))
        result[here] = batch[positions[here] - start]
        start += len(batch)
    progress(len(positions), len(positions))
    return result.reshape(-1, 3, 32, 32)


SOURCE = Source(
    name="cifar10",
    summary="CIFAR-10, 50,000 training images of 32x32 in 10 classes",
    example="cifar10?count=1000&seed=42",
    open=list_images,
    path=f"the folder {FOLDER} or the file {ARCHIVE}",
    archives=(
        Archive(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", ARCHIVE, 170
        ),
    ),
    order=20,
)
