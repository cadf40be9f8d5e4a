"""The forms in which Python code holds images, signals and rows; each becomes one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from recollect.arrangement import arrange, kind_of
from recollect.errors import InputError
from recollect.image_files import read_files
from recollect.pil_images import pil_values

# Names of an image in a dataset whose items are dicts, the likeliest first.
IMAGE_KEYS = ("image", "img", "images", "pixel_values", "x", "input", "inputs")
TAKEN = "an array, a tensor, a Dataset, a DataLoader, a data frame, or a list of images or paths"


@dataclass(frozen=True, eq=False)
class Held:
    """Values N x ..., 8-bit or in [0, 1], and what their owner calls them."""

    values: Tensor
    ids: Sequence[object] = ()
    columns: Sequence[str] = ()  # of rows


def read_form(data: Any) -> Held:
    """Read images, signals or rows in any form that is taken; what is not is an InputError."""
    if isinstance(data, Tensor):
        return Held(_arranged(data))
    if isinstance(data, np.ndarray):
        return Held(_of_array(data))
    if isinstance(data, DataLoader):
        return _of_loader(data)
    if hasattr(data, "to_numpy") and hasattr(data, "columns"):  # a data frame, without importing pandas
        return _of_frame(data)
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, Mapping):
        raise _not_taken(data)
    return _of_sequence(data, range(len(data)))


def tensor_of(array: np.ndarray) -> Tensor:
    """Make a tensor that shares the array's memory if torch can: writable, contiguous, in this machine's byte order."""
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:  # torch has no longer floats
        raise InputError(f"Pixels must be numbers of at most 64 bits, got an array of {array.dtype}.")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _not_taken(data: Any) -> InputError:
    hint = f"give {TAKEN}."
    if isinstance(data, Mapping) and data and all(hasattr(part, "__getitem__") for part in data.values()):
        hint = f"choose one of its parts: {', '.join(map(str, list(data)[:8]))}."
    return InputError(f"Cannot make images of {type(data).__name__}: {hint}")


def _of_array(array: np.ndarray) -> Tensor:
    if array.dtype == object:
        raise InputError("An array of objects holds images of mixed sizes; give one size, or resize first.")
    return tensor_of(arrange(array))


def _arranged(values: Tensor) -> Tensor:
    """Give grey images a channel; torch's own order of dimensions is taken as it is."""
    if values.ndim == 3 and kind_of(tuple(values.shape), eight_bit=values.dtype == torch.uint8) == "images":
        return values[:, None]
    return values


def _of_frame(frame: Any) -> Held:
    try:
        values = frame.to_numpy(dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError("A data frame holds numbers alone; leave out or encode its other columns.") from None
    names = list(map(str, frame.index)) if frame.index.is_unique else ()
    return Held(tensor_of(arrange(values, "rows")), names, list(map(str, frame.columns)))


def _of_loader(loader: DataLoader[Any]) -> Held:
    """Read the items that a loader draws, in the order of its dataset: a shuffled loader is the same set."""
    if isinstance(loader.dataset, IterableDataset):
        batches = [_picked(batch, number) for number, batch in enumerate(loader)]
        if not batches:
            raise InputError("There are no images here: the loader is empty.")
        return Held(_arranged(torch.cat([torch.as_tensor(batch) for batch in batches])))
    if type(loader.batch_sampler) is BatchSampler or loader.batch_sampler is None:  # drop_last drops no image here
        drawn = set(loader.sampler)
    else:
        drawn = {position for batch in loader.batch_sampler for position in batch}
    return _of_sequence(loader.dataset, sorted(drawn))


def _of_sequence(data: Any, positions: Sequence[int]) -> Held:
    """Stack single items."""
    if len(positions) == 0:
        raise InputError("There are no images here: the set is empty.")
    items = [_picked(data[position], position) for position in positions]
    if all(isinstance(item, (str, Path)) for item in items):
        return _of_files(items)
    singles = [_single(item, position) for item, position in zip(items, positions, strict=True)]
    shapes = {tuple(single.shape) for single in singles}
    if len(shapes) > 1:
        listed = ", ".join("x".join(map(str, shape)) for shape in sorted(shapes)[:4])
        raise InputError(f"Images differ in size ({listed}); give images of one size, or resize them first.")
    return Held(_stacked(singles), positions)


def _of_files(items: Sequence[str | Path]) -> Held:
    names = [str(item) for item in items]
    paths = [Path(name).expanduser() for name in names]
    values = read_files(paths, names, advice="Repair or leave them out.", size_advice="Resize them first.")
    return Held(tensor_of(values), names)


def _stacked(singles: Sequence[np.ndarray | Tensor]) -> Tensor:
    if all(isinstance(single, np.ndarray) for single in singles):
        return _of_array(np.stack(singles))
    return _arranged(torch.stack([torch.as_tensor(single) for single in singles]))


def _picked(item: Any, position: int) -> Any:
    """Take the image out of an item: of (image, label) the first, of a dict the one that holds an image."""
    if isinstance(item, (tuple, list)) and len(item) > 0 and not np.isscalar(item[0]):
        return _picked(item[0], position)
    return _of_dict(item, position) if isinstance(item, Mapping) else item


def _of_dict(item: Mapping[Any, Any], position: int) -> Any:
    images = {name: value for name, value in item.items() if _is_image(value)}
    for name in IMAGE_KEYS:
        if name in images:
            return images[name]
    if len(images) != 1:
        named = ", ".join(map(str, item)) or "none"
        raise InputError(f"Item {position} is a dict with the keys {named}; call the image 'image'.")
    return next(iter(images.values()))


def _is_image(value: Any) -> bool:
    return hasattr(value, "getbands") or (isinstance(value, (np.ndarray, Tensor)) and value.ndim > 0)


def _single(item: Any, position: int) -> np.ndarray | Tensor:
    """Make one image C x H x W, or one item of an array or tensor as it is."""
    if hasattr(item, "getbands"):  # a PIL image, without importing PIL
        values = _read_picture(item, position)
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    if not isinstance(item, (np.ndarray, Tensor)):
        raise InputError(f"Item {position} is a {type(item).__name__}; expected a PIL image, an array or a tensor.")
    if item.ndim not in (1, 2, 3):
        raise InputError(f"Image {position} has shape {tuple(item.shape)}; expected C x H x W.")
    return item


def _read_picture(image: Any, position: int) -> np.ndarray:
    try:
        return pil_values(image)
    except InputError as error:
        raise InputError(f"Image {position}: {error}") from None
    except Exception as error:  # Pillow reads lazily: only here does it meet what a file really holds
        raise InputError(f"Image {position} cannot be read: {error}.") from None
