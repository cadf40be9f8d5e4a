"""Images: pixels in [0, 1] with ids and a content hash, checked once, when they are made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.pil_images import pil_values


class Images:
    """A set of equally sized images: `pixels` is float32 in [0, 1], N x C x H x W.

    Sets read from 8-bit files stay 8-bit in memory; `pixels` is then made on each access, exactly values / 255.
    """

    def __init__(self, pixels: Tensor, ids: Iterable[object] = (), name: str = "images") -> None:
        _check_pixels(pixels)
        self._stored = pixels.detach().to("cpu", torch.float32).contiguous()
        self.ids = _check_ids(ids, len(pixels))
        self.name = name  # where they came from, for headings and records

    @classmethod
    def from_uint8(cls, values: Tensor, ids: Iterable[object] = (), name: str = "images") -> Images:
        """Make images of 8-bit values in 0..255; they are kept as bytes."""
        _check_shape(values)
        if values.dtype != torch.uint8:
            raise InputError(f"from_uint8 takes 8-bit values, got {values.dtype}.")
        images = cls.__new__(cls)
        images._stored = values.cpu().contiguous()
        images.ids = _check_ids(ids, len(values))
        images.name = name
        return images

    @classmethod
    def of(cls, data: Any, *, ids: Iterable[object] = (), name: str = "images") -> Images:
        """Make Images from Images, a tensor, an array, a torch Dataset, or a sequence of PIL images or arrays."""
        if isinstance(data, Images):
            return data
        if isinstance(data, (str, bytes)):
            raise InputError(f"Expected images, got the text {data!r}; recollect.load({data!r}) opens a source.")
        return cls(data if isinstance(data, Tensor) else _tensor_of(data), ids, name)

    @property
    def pixels(self) -> Tensor:
        """All pixels as float32 in [0, 1]."""
        return _as_float32(self._stored)

    def pixels_at(self, positions: Tensor) -> Tensor:
        """Return the pixels of some images, without making Images of them."""
        return _as_float32(self._stored[positions])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        c, h, w = self._stored.shape[1:]
        return c, h, w

    @cached_property
    def hash(self) -> str:
        """SHA-256 of shape and float32 pixels: equal exactly when the pixels are, however they are stored."""
        digest = hashlib.sha256(repr(tuple(self._stored.shape)).encode())
        for start in range(0, len(self), 1024):  # in slices, so that 8-bit sets are never all floats at once
            digest.update((self[start : start + 1024].pixels + 0.0).numpy().tobytes())  # + 0.0: -0 is 0
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, index: Any) -> Images:
        """Select images by a position, a slice, a list of positions or a boolean mask; the result is Images."""
        positions = np.atleast_1d(np.arange(len(self))[index])
        selected = object.__new__(Images)
        forward = isinstance(index, slice) and (index.step or 1) > 0  # a view of the pixels, not a copy
        selected._stored = self._stored[index] if forward else self._stored[positions.tolist()]
        selected.ids = tuple(self.ids[p] for p in positions)
        selected.name = self.name
        if not len(selected):
            raise InputError(f"That selection leaves none of the {len(self)} images.")
        return selected

    def spread(self, count: int) -> np.ndarray:
        """Positions of so many images, or of all if there are fewer, evenly spaced over the set."""
        return np.linspace(0, len(self) - 1, min(count, len(self))).round().astype(int)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"Images({self.name!r}, {len(self)} of {size}, sha256 {self.hash[:12]})"


def _as_float32(stored: Tensor) -> Tensor:
    return stored if stored.is_floating_point() else stored.to(torch.float32) / 255


def _check_ids(ids: Iterable[object], count: int) -> tuple[str, ...]:
    names = tuple(str(i) for i in ids) or tuple(str(i) for i in range(count))
    if len(names) != count:
        raise InputError(f"{len(names)} ids were given for {count} images; give one id an image.")
    if len(set(names)) != count:
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"Ids must be different, but {twice!r} stands for more than one image.")
    return names


def _check_shape(pixels: Tensor) -> None:
    if not isinstance(pixels, Tensor):
        raise InputError(f"Pixels must be a tensor, not {type(pixels).__name__}; Images.of() takes other forms.")
    if pixels.ndim != 4:
        raise InputError(
            f"Images need four dimensions, N x C x H x W; got shape {tuple(pixels.shape)}."
            + (" For one image use pixels[None], for grey ones pixels[:, None]." if pixels.ndim == 3 else "")
        )
    if 0 in pixels.shape:
        raise InputError(f"There are no images here: shape {tuple(pixels.shape)} is empty.")
    if pixels.shape[1] not in (1, 3):
        hint = " They look channels-last: use pixels.permute(0, 3, 1, 2)." if pixels.shape[3] in (1, 3) else ""
        raise InputError(f"Expected 1 or 3 channels, found {pixels.shape[1]} in shape {tuple(pixels.shape)}.{hint}")


def _check_pixels(pixels: Tensor) -> None:
    _check_shape(pixels)
    pixels = pixels.detach()
    _check_floating_point(pixels)
    finite = torch.isfinite(pixels)
    if not bool(finite.all()):
        first = int((~finite).flatten(1).any(1).nonzero()[0])
        raise InputError(
            f"Pixels must be finite: {int((~finite).sum())} are NaN or infinite, the first in image {first}."
        )
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        raise InputError(f"Pixels must lie in [0, 1]; found [{low:.8g}, {high:.8g}]. {_range_hint(low, high)}")


def _check_floating_point(pixels: Tensor) -> None:
    if pixels.is_sparse:
        raise InputError("Pixels must be floating point in [0, 1], got a sparse tensor.")
    if pixels.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return
    hint = "; this looks like 0-255 data: divide by 255" if _holds_bytes(pixels) else ""
    raise InputError(f"Pixels must be floating point in [0, 1], got {pixels.dtype}{hint}.")


def _holds_bytes(pixels: Tensor) -> bool:
    if pixels.dtype in (torch.bool, torch.uint64) or pixels.is_complex() or pixels.is_floating_point():
        return False
    return 1 < int(pixels.to(torch.int64).max()) <= 255


def _range_hint(low: float, high: float) -> str:
    if low >= 0 and 1.5 < high <= 255:
        return "This looks like 0-255 data: divide by 255."
    if low > -0.05 and high < 1.05:
        return "They stick out a little: use pixels.clamp(0, 1)."
    if -1 <= low < 0 and high <= 1:
        return "This looks like [-1, 1] data: use (pixels + 1) / 2."
    return "This looks normalised: undo it (pixels * std + mean) or clamp."


def _tensor_of(data: Any) -> Tensor:
    if isinstance(data, np.ndarray):
        if data.dtype == object:
            raise InputError("An array of objects holds images of mixed sizes; give one size, or resize first.")
        return _channels_first(data) if data.ndim == 4 else tensor_of(data)
    return _stacked(data)


def _stacked(data: Any) -> Tensor:
    """Stack a sequence of single images."""
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, Mapping):
        raise InputError(
            f"Cannot make images of {type(data).__name__}: give an array, a tensor, a Dataset or a list of images."
        )
    if len(data) == 0:
        raise InputError("There are no images here: the set is empty.")
    singles = [_single(data[i], i) for i in range(len(data))]
    shapes = {tuple(s.shape) for s in singles}
    if len(shapes) > 1:
        listed = ", ".join("x".join(map(str, s)) for s in sorted(shapes)[:4])
        raise InputError(f"Images differ in size ({listed}); give images of one size, or resize them first.")
    return torch.stack(singles)


def _single(item: Any, position: int) -> Tensor:
    """Make one image C x H x W. PIL images have a defined range, so they alone are scaled."""
    if isinstance(item, (tuple, list)) and len(item) > 0 and not np.isscalar(item[0]):
        item = item[0]  # a Dataset's (image, label)
    if hasattr(item, "getbands"):  # a PIL image, without importing PIL
        return _channels_first(_read_picture(item, position).astype(np.float32) / 255)
    single = _channels_first(item) if isinstance(item, np.ndarray) else item
    if not isinstance(single, Tensor):
        raise InputError(f"Item {position} is a {type(item).__name__}; expected a PIL image, an array or a tensor.")
    if single.ndim != 3:
        raise InputError(f"Image {position} has shape {tuple(item.shape)}; expected C x H x W.")
    return single


def _read_picture(image: Any, position: int) -> np.ndarray:
    try:
        return pil_values(image)
    except InputError as error:
        raise InputError(f"Image {position}: {error}") from None
    except Exception as error:  # Pillow reads lazily: only here does it meet what a file really holds
        raise InputError(f"Image {position} cannot be read: {error}.") from None


def _channels_first(array: np.ndarray) -> Tensor:
    """Make a tensor with trailing channels moved to the front (arrays and files mostly store them last)."""
    if array.ndim == 2:  # one grey image
        array = array[None]
    if array.ndim >= 3 and array.shape[-1] in (1, 3) and array.shape[-3] not in (1, 3):
        array = np.moveaxis(array, -1, -3)
    return tensor_of(array)


def tensor_of(array: np.ndarray) -> Tensor:
    """Make a tensor that shares the array's memory if torch can: writable, contiguous, in this machine's byte order."""
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:  # torch has no longer floats
        raise InputError(f"Pixels must be numbers of at most 64 bits, got an array of {array.dtype}.")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())
