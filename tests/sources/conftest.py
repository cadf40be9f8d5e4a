"""Small copies of the official formats, made here, and the real ones where they are."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import Images


def eight_bit(images: Images) -> np.ndarray:
    """Return the 8-bit values that a set was read from."""
    return (images.pixels * 255).round().to(torch.uint8).numpy()


def kept_as_bytes(images: Images) -> bool:
    """Return whether a set is kept as bytes: its pixels are then made at each access."""
    return images.pixels is not images.pixels


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def python2_batch(data: np.ndarray, labels: list[int]) -> bytes:
    """A batch as the official files have it: byte keys, protocol 2, numpy.core names."""
    pickled = pickle.dumps({b"data": data, b"labels": labels, b"batch_label": b"training batch 1 of 5"}, protocol=2)
    return pickled.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


@pytest.fixture
def cifar(tmp_path: Path, values: Callable[..., np.ndarray]) -> tuple[Path, np.ndarray]:
    """A folder of two batches with 20 images each, and their values."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    data = values(40, 3072)
    for number in (1, 2):
        rows = data[20 * (number - 1) : 20 * number]
        (folder / f"data_batch_{number}").write_bytes(python2_batch(rows, [i % 10 for i in range(20)]))
    (folder / "test_batch").write_bytes(python2_batch(values(5, 3072), [0] * 5))
    return folder, data.reshape(-1, 3, 32, 32)


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Path]:
    """A zip in the layout of Tiny ImageNet; extra entries can be added or replace others."""

    def make(classes: int = 4, each: int = 6, extra: dict[str, bytes] | None = None, name: str = "tiny.zip") -> Path:
        rng = np.random.default_rng(5)
        entries = {"tiny-imagenet-200/wnids.txt": b""}
        for c in range(classes):
            for k in range(each):
                colour = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((64, 64))
                entry = f"tiny-imagenet-200/train/n{c:08d}/images/n{c:08d}_{k}.JPEG"
                entries[entry] = encoded(colour, "JPEG")
        entries |= extra or {}
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for entry, content in entries.items():
                archive.writestr(entry, content)
        return tmp_path / name

    return make
