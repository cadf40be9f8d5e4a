"""The forms in which Python code holds images, signals and rows; each becomes one tensor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, default_collate

from recollect.counting import with_article
from recollect.errors import InputError, first_line, is_out_of_memory
from recollect.images.arrangement import arrange, kind_of
from recollect.images.image_files import read_files
from recollect.images.pil_images import pil_values

# Names of an image in a dataset whose items are dicts, the likeliest first.
IMAGE_KEYS = ("image", "img", "images", "pixel_values", "x", "input", "inputs")
IMAGE_DIMENSIONS = 3
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
    if hasattr(data, "to_numpy"):  # of pandas, without importing it
        return _of_frame(data) if hasattr(data, "columns") else read_form(data.to_list())
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
    elif isinstance(data, IterableDataset):
        hint = "a stream is read to its end through torch.utils.data.DataLoader(dataset, batch_size=None)."
    elif "DataLoaderIter" in type(data).__name__:
        hint = "give the DataLoader itself, without iter()."
    elif hasattr(data, "__iter__") and not isinstance(data, Mapping):
        hint = f"make a list of it, or give {TAKEN}."
    return InputError(f"Cannot make images of {type(data).__name__}: {hint}")


def _of_array(array: np.ndarray) -> Tensor:
    if np.ma.is_masked(array):
        raise InputError("A masked array has values that are missing; fill them, or leave those images out.")
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
        others = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "buif"]
        raise InputError(
            f"A data frame holds numbers alone; leave out or encode its other columns ({', '.join(others[:12])}). Of "
            "one with paths of images give their column."
        ) from None
    names = list(map(str, frame.index)) if frame.index.is_unique else ()
    return Held(tensor_of(arrange(values, "rows")), names, list(map(str, frame.columns)))


def _of_loader(loader: DataLoader[Any]) -> Held:
    """Read the items that a loader draws, in the order of its dataset: a shuffled loader is the same set."""
    if isinstance(loader.dataset, IterableDataset):
        return _of_stream(loader)
    if type(loader.batch_sampler) is BatchSampler or loader.batch_sampler is None:  # drop_last drops no image here
        drawn = set(loader.sampler)
    else:
        drawn = {position for batch in loader.batch_sampler for position in batch}
    own_batches = loader.batch_sampler is not None and loader.collate_fn is not default_collate
    dataset = _Collated(loader) if own_batches else loader.dataset
    return _of_sequence(dataset, sorted(drawn))


class _Collated:
    """The items of a dataset, each as the loader's own function converts it."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.dataset, self.collate = loader.dataset, loader.collate_fn

    def __getitem__(self, position: int) -> Any:
        item = self.dataset[position]
        return _of_batch(self.collate([item, item]), position)[0]


def _of_stream(loader: DataLoader[Any]) -> Held:
    """Read the batches of a stream to its end."""
    items: list[Any] = []
    columns = _array_columns(loader.dataset)
    try:
        for number, batch in enumerate(loader):
            if loader.batch_sampler is not None:
                items += _of_batch(batch, number)
            else:
                items.append(_picked(_with_arrays(batch, columns), number))
    except Exception as error:  # a dataset runs code of its own
        raise _unreadable(f"Item {len(items)}", loader.dataset, error) from error
    if loader.batch_sampler is None and items and getattr(items[0], "ndim", 0) > IMAGE_DIMENSIONS:
        items = [image for batch in items for image in batch]  # a stream of batches
    return _of_items(items, range(len(items)))


def _of_batch(batch: Any, number: int) -> list[Any]:
    """List the images of a batch: of one array, or of a list that a function of the user's own returns."""
    if isinstance(batch, (list, tuple)) and _are_single(batch):
        return list(batch)
    images = _picked(batch, number)
    if not isinstance(images, (np.ndarray, Tensor)) or images.ndim < 2:
        raise InputError(f"Batch {number} holds no images, but {with_article(type(images).__name__)}.")
    return list(images)


def _are_single(parts: Sequence[Any]) -> bool:
    """Say whether parts of a batch are its images, and not all its images, all its labels and so on."""
    if not all(map(_is_image, parts)):
        return False
    shapes = {part.size if hasattr(part, "getbands") else tuple(np.shape(part)) for part in parts}
    return len(shapes) == 1 and len(next(iter(shapes))) <= IMAGE_DIMENSIONS


class _Columns:
    """The items of a dataset of Hugging Face, in which columns of arrays are arrays."""

    def __init__(self, dataset: Any, columns: Mapping[str, np.dtype]) -> None:
        self.dataset, self.columns = dataset, columns

    def __getitem__(self, position: int) -> Any:
        return _with_arrays(self.dataset[position], self.columns)


def _array_columns(data: Any) -> dict[str, np.dtype]:
    """Find the columns that hold arrays, with their dtype; the formats of such a dataset give lists or 64 bits."""
    features = getattr(data, "features", None)
    if not isinstance(features, Mapping):
        return {}
    arrays = {name: feature for name, feature in features.items() if type(feature).__name__.startswith("Array")}
    return {name: np.dtype(feature.dtype) for name, feature in arrays.items()}


def _with_arrays(item: Any, columns: Mapping[str, np.dtype]) -> Any:
    if not columns or not isinstance(item, Mapping):
        return item
    return {**item, **{name: np.asarray(item[name], dtype) for name, dtype in columns.items() if name in item}}


def _of_sequence(data: Any, positions: Sequence[int]) -> Held:
    """Stack single items."""
    if columns := _array_columns(data):
        data = _Columns(data, columns)
    items = [_picked(_item(data, position), position) for position in positions]
    held = _of_items(items, positions)
    if not isinstance(items[0], (str, Path)):
        again = _item(data, positions[0])
        _tell_of_pair(again, positions[0])
        _check_repeatable(data, positions[0], items[0], _picked(again, positions[0]))
    return held


def _of_items(items: Sequence[Any], positions: Sequence[int]) -> Held:
    if not items:
        raise InputError("There are no images here: the set is empty.")
    if all(isinstance(item, (str, Path)) for item in items):
        return _of_files(items)
    singles = [_single(item, position) for item, position in zip(items, positions, strict=True)]
    shapes = {tuple(single.shape) for single in singles}
    if len(shapes) > 1:
        listed = ", ".join("x".join(map(str, shape)) for shape in sorted(shapes)[:4])
        raise InputError(f"Images differ in size ({listed}); give images of one size, or resize them first.")
    return Held(_stacked(singles), positions)


def _tell_of_pair(item: Any, position: int) -> None:
    """Warn if an item holds two images, as for a denoiser: either may be what the model was trained to return."""
    if isinstance(item, (tuple, list)) and len(item) > 1 and _are_single(item[:2]):
        warnings.warn(
            f"Item {position} holds two images of one size, and the first of each item is taken; if the model learns "
            "to return the second one, give a dataset of those.",
            stacklevel=2,
        )


def _check_repeatable(data: Any, position: int, first_item: Any, second_item: Any) -> None:
    """Warn if an item is another one when it is read again."""
    single, again = (_single(one, position) for one in (first_item, second_item))
    if isinstance(single, Tensor) and isinstance(again, Tensor):
        same = torch.equal(single, again)
    else:
        same = np.array_equal(np.asarray(single), np.asarray(again))
    if not same:
        warnings.warn(
            f"Item {position} was another image when it was read again: this {_name(data)} changes images at "
            "random; give it without random transforms, so that the images are those that the model was trained on.",
            stacklevel=2,
        )


def _item(data: Any, position: int) -> Any:
    try:
        return data[position]
    except Exception as error:  # a dataset runs code of its own
        raise _unreadable(f"Item {position}", data, error) from error


def _unreadable(part: str, data: Any, error: Exception) -> Exception:
    """Say which part of a set cannot be read; errors that say it themselves stay as they are."""
    if isinstance(error, InputError) or is_out_of_memory(error):
        return error
    reason = first_line(error).rstrip(".")
    return InputError(f"{part} of this {_name(data)} cannot be read ({type(error).__name__}: {reason}).")


def _name(data: Any) -> str:
    if isinstance(data, _Collated):
        return "DataLoader"
    return type(data.dataset if isinstance(data, _Columns) else data).__name__


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
    if isinstance(item, (tuple, list)) and len(item) > 1 and _is_single_value(item[0]) and _is_image(item[1]):
        kind = type(item[0]).__name__
        raise InputError(f"Item {position} begins with {with_article(kind)}; give the image first, then its label.")
    if isinstance(item, (tuple, list)) and len(item) > 0 and (isinstance(item[0], str) or not np.isscalar(item[0])):
        return _picked(item[0], position)
    return _of_dict(item, position) if isinstance(item, Mapping) else item


def _is_single_value(part: Any) -> bool:
    """Say whether a part is a label: a number or text, or an array or tensor of one number without dimensions."""
    return np.isscalar(part) or (isinstance(part, (np.ndarray, Tensor)) and part.ndim == 0)


def _of_dict(item: Mapping[Any, Any], position: int) -> Any:
    images = {name: value for name, value in item.items() if _is_image(value)}
    for name in IMAGE_KEYS:
        if name in images:
            return images[name]
    if len(images) != 1:
        named = ", ".join(map(str, item)) or "none"
        problem = "call the image 'image'" if images else "none of these holds an image"
        raise InputError(f"Item {position} is a dict with the keys {named}; {problem}.")
    return next(iter(images.values()))


def _is_image(value: Any) -> bool:
    return hasattr(value, "getbands") or (isinstance(value, (np.ndarray, Tensor)) and value.ndim > 0)


def _single(item: Any, position: int) -> np.ndarray | Tensor:
    """Make one image C x H x W, or one item of an array or tensor as it is."""
    if hasattr(item, "getbands"):  # a PIL image, without importing PIL
        values = _read_picture(item, position)
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    if not isinstance(item, (np.ndarray, Tensor)):
        raise InputError(
            f"Item {position} is {with_article(type(item).__name__)}; expected a PIL image, an array or a tensor."
        )
    if item.ndim not in (1, 2, 3):
        batch = " A batch of images has such a shape: join batches with torch.cat(batches), and leave labels out."
        hint = batch if item.ndim == IMAGE_DIMENSIONS + 1 else ""
        raise InputError(f"Image {position} has shape {tuple(item.shape)}; expected C x H x W.{hint}")
    return item


def _read_picture(image: Any, position: int) -> np.ndarray:
    try:
        return pil_values(image)
    except InputError as error:
        raise InputError(f"Image {position}: {error}") from None
    except Exception as error:  # Pillow reads lazily: only here does it meet what a file really holds
        raise InputError(f"Image {position} cannot be read: {error}.") from None
