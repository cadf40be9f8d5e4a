"""Canaries on disk: PNG files to train on, PNG files for the audit, and a sealed list of the coins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recollect.canaries.canary_list import LIST, list_of
from recollect.canaries.canary_set import CanarySet, canary_names, copy_name, hashes, known_names
from recollect.canaries.design import Design
from recollect.errors import InputError, check_seed, is_whole
from recollect.files.locks import LOCK, lock_folder
from recollect.images import Images
from recollect.images.decoding import decode
from recollect.records import atomically, read_sealed, write_sealed

FORMAT = "recollect-canaries-1"
TO_TRAIN, FOR_AUDIT = "train", "audit"  # the folders of copies to train on, and of one file for each canary


def write_canaries(canaries: CanarySet, folder: str | Path) -> Path:
    """Write canaries to a new folder, or finish one that a killed run left; the list comes last and makes it whole.

    Args:
        canaries: The canaries.
        folder: A new folder.

    Returns:
        The path of the folder.

    Examples:
        >>> from recollect.canaries import make_canaries, write_canaries
        >>> folder = write_canaries(make_canaries("photos?count=8&size=8", 20, repeats=(1,)), "canaries")
        >>> (folder / "canaries.json").exists()
        True
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; canaries are drawn into a new folder.")
    contents = {f"{path}.png": _png(image) for image, paths in _paths(canaries) for path in paths}
    with lock_folder(folder):
        present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()} - {LOCK}
        if not present <= set(contents):
            raise InputError(f"{folder} is there already and not empty; canaries are drawn once, into a new folder.")
        for path, content in contents.items():
            with atomically(folder / path) as file:
                file.write_bytes(content)
        write_sealed(folder / LIST, FORMAT, {**canaries.content(), "commitment": canaries.commitment})
    return folder


def open_canaries(folder: str | Path) -> CanarySet:
    """Read canaries; images or coins that were changed are refused.

    Args:
        folder: A folder that `write_canaries` or `recollect canaries make` wrote.

    Returns:
        The canaries with their coins.

    Examples:
        >>> from recollect.canaries import make_canaries, open_canaries, write_canaries
        >>> folder = write_canaries(make_canaries("photos?count=8&size=8", 20, repeats=(1,)), "canaries")
        >>> len(open_canaries(folder).images)
        20
    """
    path = list_of(folder)
    content = read_sealed(path, FORMAT, "a list of canaries")
    try:
        canaries = _read(Path(folder), content)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a list of canaries that can be used: {error!r}.") from None
    if canaries.commitment != content.get("commitment"):
        raise InputError(f"{path} was changed after it was written: its commitment does not fit images and coins.")
    return canaries


def _read(folder: Path, content: Mapping[str, Any]) -> CanarySet:
    rows, known = content["canaries"], content["known"]
    check_seed(content["seed"])
    if not all(is_whole(count, 1) for count in [content["known_repeats"], *(row["repeats"] for row in rows)]):
        raise InputError(f"{folder / LIST} is not a list of canaries that can be used: repeats are whole numbers.")
    return CanarySet(
        _read_images(folder, canary_names(len(rows)), [row["sha256"] for row in rows]),
        inside=np.array([row["in"] is True for row in rows], bool),
        repeats=np.array([row["repeats"] for row in rows], int),
        known=_read_images(folder, known_names(len(known)), known),
        known_repeats=content["known_repeats"],
        design=Design.of(content),
        seed=content["seed"],
        like=str(content["like"]),
    )


def _paths(canaries: CanarySet) -> Iterator[tuple[Images, list[str]]]:
    """Yield each canary with the files that hold it: one for the audit, and its copies to train on."""
    copies = np.where(canaries.inside, canaries.repeats, 0).tolist()
    every = [(canaries.images, position, count) for position, count in enumerate(copies)]
    every += [(canaries.known, position, canaries.known_repeats) for position in range(len(canaries.known))]
    for images, position, count in every:
        name = images.ids[position]
        to_train = [f"{TO_TRAIN}/{copy_name(name, copy)}" for copy in range(1, count + 1)]
        yield images[position], [f"{FOR_AUDIT}/{name}", *to_train]


def _png(image: Images) -> bytes:
    from PIL import Image

    values = (image.pixels[0] * 255).round().byte().numpy()
    content = BytesIO()
    channels_last = values[0] if len(values) == 1 else values.transpose(1, 2, 0)
    Image.fromarray(channels_last).save(content, "PNG")
    return content.getvalue()


def _read_images(folder: Path, names: Sequence[str], digests: Sequence[str]) -> Images:
    values = [decode(folder / FOR_AUDIT / f"{name}.png", f"{folder / FOR_AUDIT / name}.png") for name in names]
    if len({one.shape for one in values}) > 1:
        raise InputError(f"The canaries in {folder / FOR_AUDIT} differ in size, so some were changed.")
    images = Images.from_uint8(torch.from_numpy(np.stack(values)), names)
    for name, expected, digest in zip(names, digests, hashes(images), strict=True):
        if digest != expected:
            raise InputError(f"{folder / FOR_AUDIT / name}.png was changed after it was made: its hash does not fit.")
    return images
