"""Arrays in files: .npy, .npz and .safetensors, 8-bit, floating point in [0, 1] or in a stated range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.files.archives import check_safetensors, open_zip
from recollect.files.limits import IMAGES
from recollect.images.arrangement import arrange
from recollect.sources import stated_range
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source
from recollect.sources.stated_range import ValueRange, read_range
from recollect.sources.unpacking import check_unpacked

SUFFIXES = (".npy", ".npz", ".safetensors")


def list_images(path: Path, address: Address) -> Catalogue:
    """List the images of one array; ids are their positions in it."""
    values = _open(path, address)
    IMAGES.check(len(values), f"{path} holds {len(values):,} images.")
    unit = read_range(address, lambda other: _open(other, address))
    on_disk = path.suffix.lower() == ".npy"
    # A .npy is opened for each piece: what was read of a memory map counts as this process's memory until it is closed.
    opened = partial(_open, path, address) if on_disk else lambda: values
    return Catalogue(
        ids=[str(position) for position in range(len(values))],
        read=partial(_read, opened, unit, path),
        in_place=on_disk,
        may_grow=False,
        refuses_bits=unit is None,
    )


def _open(path: Path, address: Address) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    values = _load(path, address.parameters.get("key"))
    try:
        return arrange(values, address.parameters.get("as"))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _load(path: Path, key: str | None) -> np.ndarray:
    """Open an array; one of a .npy is left on disk until it is read."""
    loaders = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    loader = loaders.get(path.suffix.lower())
    if loader is None:
        raise InputError(f"{path} is no array file; expected one of {', '.join(SUFFIXES)}.")
    try:
        return loader(path, key)
    except InputError:
        raise
    except Exception as error:  # numpy, zipfile and safetensors each have their own kinds
        raise InputError(f"{path} cannot be read ({error}).") from None


def _npy(path: Path, key: str | None) -> np.ndarray:
    if key is not None:
        raise InputError(f"{path} is a .npy and holds one array; leave key={key} out.")
    return np.lib.format.open_memmap(path, mode="r")  # never unpickles, and reads only what is drawn


def _npz(path: Path, key: str | None) -> np.ndarray:
    with path.open("rb") as file:
        if file.read(6) == np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} is named .npz but holds a bare array; rename it to .npy.")
    with open_zip(path) as archive:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        entry = entries[_pick(path, list(entries), key)]
        check_unpacked(entry.file_size, path)
        with archive.open(entry) as content:
            return np.lib.format.read_array(content, allow_pickle=False, max_header_size=10_000)


def _safetensors(path: Path, key: str | None) -> np.ndarray:
    import torch

    try:
        from safetensors import safe_open
    except ImportError:
        raise InputError(f"Reading {path} needs safetensors: run pip install safetensors.") from None
    check_safetensors(path)
    with safe_open(path, framework="pt") as loaded:
        tensor = loaded.get_tensor(_pick(path, list(loaded.keys()), key))
    if tensor.dtype == torch.bfloat16:  # which numpy has not
        return tensor.float().numpy()
    return tensor.numpy()


def _pick(path: Path, names: Sequence[str], asked: str | None) -> str:
    """Choose the array: the one asked for, the only one, or the one called images."""
    key = asked
    if key is None:
        key = names[0] if len(names) == 1 else "images"
    if key not in names:
        listed = ", ".join(names) or "(none)"
        if asked is not None:
            raise InputError(f"{path} has no array {asked!r}; it holds {listed}.")
        raise InputError(f"{path} holds the arrays {listed}; add key=NAME to say which.")
    return key


def _read(
    opened: Callable[[], np.ndarray], unit: ValueRange | None, path: Path, positions: np.ndarray, progress: Progress
) -> np.ndarray:
    values = opened()
    if values.dtype != np.uint8 and values.dtype.kind not in ("f" if unit is None else "buif"):
        raise InputError(
            f"{path} holds {values.dtype}; expected 8-bit values, or floating point in [0, 1]. For other numbers state "
            "their range: range=LOW,HIGH."
        )
    chosen = np.asarray(values[as_slice(positions)])
    progress(len(positions), len(positions))
    if unit is not None:
        return unit.to_unit(chosen.astype(np.float64), str(path))
    if chosen.dtype != np.uint8:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            return chosen.astype(np.float32)
    return np.array(chosen)  # not a view of the file


def as_slice(positions: np.ndarray) -> np.ndarray | slice:
    """Return positions that follow each other as a slice, which is read much faster."""
    first, count = int(positions[0]), len(positions)
    follow = int(positions[-1]) - first == count - 1 and bool((np.diff(positions) == 1).all())
    return slice(first, first + count) if follow else positions


SOURCE = Source(
    name="array",
    summary="a .npy, .npz or .safetensors file of images, signals or rows, 8-bit or floating point in [0, 1]",
    example="array:my/images.npy?count=100",
    open=list_images,
    path="a .npy, .npz or .safetensors file",
    suffixes=SUFFIXES,
    parameters=("key", "as", *stated_range.PARAMETERS),
    order=60,
)
