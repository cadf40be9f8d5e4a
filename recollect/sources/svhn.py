"""SVHN, cropped digits: the official MATLAB files, at most one crop of each house photo."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recollect.errors import InputError
from recollect.sources.address import Address
from recollect.sources.base import Archive, Catalogue, Progress, Source
from recollect.sources.mat import check_mat

TRAIN = "train_32x32.mat"
_SERVER = "http://ufldl.stanford.edu/housenumbers"
_MOST_CROPS = 1_000_000
_LONGEST_NUMBER = 6  # digits of the longest house number in the set


def list_images(path: Path, _address: Address) -> Catalogue:
    """List the crops of one .mat file; crops of one photo overlap, so they form a group of which one is drawn."""
    path = _find(path)
    values, digits = _load(path)
    photos = _photos(path, len(digits))
    drawable = np.arange(len(digits))
    if photos is None:
        # The file is in the order of the photos: crops this far apart cannot come from the same one.
        drawable = drawable[::_LONGEST_NUMBER]
    prefix = path.stem.split("_")[0]
    return Catalogue(
        ids=[f"{prefix}/{crop}" for crop in drawable],
        read=lambda positions, progress: _read(values, drawable[positions], progress),
        labels=[str(digit) for digit in digits[drawable]],
        groups=photos,
    )


def _find(path: Path) -> Path:
    for candidate in (path, path / TRAIN, path / "svhn" / TRAIN):
        if candidate.is_file():
            return candidate
    raise InputError(f"There is no SVHN file at {path}; expected {TRAIN} or a folder that holds it.")


def _load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return crops as 32 x 32 x 3 x N bytes, and the digit of each."""
    try:
        import scipy.io
    except ImportError:
        raise InputError(
            f"Reading {path} needs scipy, which is not installed here: run pip install scipy, "
            "or save the images as a .npy where it is installed and use array:PATH."
        ) from None
    try:
        check_mat(path)
        shapes = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
        _check(path, shapes)  # from the header, before the content is given memory
        content = scipy.io.loadmat(path, variable_names=("X", "y"))
    except InputError:
        raise
    except Exception as error:  # scipy's reader raises many kinds on a broken file
        raise InputError(f"{path} is not a readable MATLAB file ({type(error).__name__}: {error}).") from None
    digits = content["y"].ravel()
    if not np.isin(digits, np.arange(11)).all():
        raise InputError(f"{path} is no SVHN file: its y holds something other than the digits 1 to 10.")
    return content["X"], digits.astype(np.int64) % 10  # the file writes 10 for the digit 0


def _check(path: Path, shapes: dict[str, tuple[tuple[int, ...], str]]) -> None:
    shape, kind = shapes.get("X", ((), "nothing"))
    right = len(shape) == 4 and shape[:3] == (32, 32, 3) and 0 < shape[3] <= _MOST_CROPS
    if not right or kind != "uint8":
        raise InputError(f"{path} is no SVHN file: expected X of 32 x 32 x 3 x N uint8, found {kind} of shape {shape}.")
    length, kind = shapes.get("y", ((), ""))
    if length not in ((shape[3], 1), (1, shape[3])) or not kind.startswith(("uint", "int", "double", "single")):
        raise InputError(f"{path} is no SVHN file: expected y with {shape[3]} digits.")


def _photos(path: Path, crops: int) -> list[int] | None:
    """Return the photo of each crop, if a text file beside the .mat names it."""
    file = path.with_name(path.stem.split("_")[0] + "_photo_ids.txt")
    if not file.is_file():
        return None
    try:
        photos = [int(line) for line in file.read_text(encoding="utf-8").split()]
    except ValueError as error:
        raise InputError(f"{file} should hold one photo number a line: {error}.") from None
    if len(photos) != crops:
        raise InputError(f"{file} has {len(photos)} photo numbers for the {crops} crops of {path.name}.")
    return photos


def _read(values: np.ndarray, crops: np.ndarray, progress: Progress) -> np.ndarray:
    chosen = np.ascontiguousarray(values[..., crops].transpose(3, 2, 0, 1))
    progress(len(crops), len(crops))
    return chosen


SOURCE = Source(
    name="svhn",
    summary="SVHN, cropped house-number digits of 32x32, one of each photo",
    example="svhn?count=50&seed=42",
    open=list_images,
    path=f"the file {TRAIN} or its folder",
    archives=(
        Archive(f"{_SERVER}/train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", "svhn/train_32x32.mat", 182),
        Archive(f"{_SERVER}/test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", "svhn/test_32x32.mat", 64),
    ),
    order=30,
)
