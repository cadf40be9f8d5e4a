"""Images: pixels in [0, 1] with ids and a content hash, checked once, when they are made.

Signals and rows of a table are held alike. A set that is too large for memory stays on disk; its pixels are read when
they are asked for.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.counting import counted
from recollect.errors import InputError
from recollect.images.arrangement import CHANNELS, EXPECTED, looks_like_one_image, one_image
from recollect.images.image_forms import read_form
from recollect.images.stored_values import InMemory, OnDisk, Stored
from recollect.pieces import pieces

KINDS = {3: "images", 2: "signals", 1: "rows"}  # by the dimensions of one


class Images:
    """A set of equally sized images: `pixels` is float32 in [0, 1], N x C x H x W.

    Signals are N x C x L and rows N x d; the columns of rows may have names. Sets read from 8-bit files stay 8-bit in
    memory; `pixels` is then made on each access, exactly values / 255. A large set may be on disk: take its pixels in
    pieces, `images[start:end].pixels`.

    Args:
        pixels: Values in [0, 1], the images first.
        ids: A different name for each image. Defaults to numbers from 0.
        name: Where the images are from, for headings and records.
        columns: Names of the columns of rows.

    Examples:
        >>> import torch
        >>> from recollect import Images
        >>> images = Images(torch.zeros(4, 3, 8, 8), name="black")
        >>> len(images), images.shape
        (4, (3, 8, 8))
        >>> len(images[:2])
        2
    """

    _stored: Stored

    def __init__(
        self, pixels: Tensor, ids: Iterable[object] = (), name: str = "images", columns: Sequence[str] = ()
    ) -> None:
        _check_pixels(pixels)
        self._stored = InMemory(pixels.detach().to("cpu", torch.float32).contiguous())
        self.ids = _check_ids(ids, len(pixels))
        self.name = name  # where they came from, for headings and records
        self.columns = _check_columns(columns, self.shape)

    @classmethod
    def from_uint8(cls, values: Tensor, ids: Iterable[object] = (), name: str = "images") -> Images:
        """Make images of 8-bit values in 0..255; they are kept as bytes."""
        _check_shape(values)
        if values.dtype != torch.uint8:
            raise InputError(f"from_uint8 takes 8-bit values, got {values.dtype}.")
        images = cls.__new__(cls)
        images._stored = InMemory(values.cpu().contiguous())
        images.ids = _check_ids(ids, len(values))
        images.name = name
        images.columns = ()
        return images

    @classmethod
    def on_disk(
        cls, reader: Callable[[np.ndarray], Tensor], positions: np.ndarray, ids: Iterable[object] = (),
        name: str = "images", columns: Sequence[str] = (), largest_8_bit: Callable[[int], None] = lambda _: None,
    ) -> Images:  # fmt: skip
        """Make images of values that a reader fetches by position; all are read once, in pieces, to be checked.

        `largest_8_bit` is called with the largest value of an 8-bit set and may refuse it.
        """
        images = cls.__new__(cls)
        images.ids, images.name = _check_ids(ids, len(positions)), name
        shape = tuple(reader(positions[:1]).shape[1:])
        try:
            images._check_in_pieces(OnDisk(reader, positions, shape), largest_8_bit)
        except _ColourAmongGrey:
            images._check_in_pieces(OnDisk(reader, positions, (3, *shape[1:])), largest_8_bit)
        images.columns = _check_columns(columns, images.shape)
        return images

    def _check_in_pieces(self, stored: OnDisk, largest_8_bit: Callable[[int], None]) -> None:
        """Check every piece, and compute the hash on the way."""
        self._stored, largest, is_8_bit = stored, 0, True
        digest = hashlib.sha256(repr(stored.shape).encode())
        for rows in pieces(len(self), self.shape):
            values = stored.read(rows)
            _check_piece(values, stored.shape, rows.start)
            is_8_bit = is_8_bit and values.dtype == torch.uint8
            largest = max(largest, int(values.max()))
            _update(digest, values)
        if is_8_bit:
            largest_8_bit(largest)
        self.__dict__["hash"] = digest.hexdigest()

    @classmethod
    def of(cls, data: Any, *, ids: Iterable[object] = (), name: str = "images") -> Images:
        """Make Images from any form in which Python code holds them.

        Args:
            data: An array, a tensor, a dataset, a data frame, or a list of PIL images or files.
            ids: A different name for each image.
            name: Where the images are from.

        Returns:
            The images; 8-bit values stay 8-bit.
        """
        if isinstance(data, Images):
            return data
        if isinstance(data, (str, bytes)):
            raise InputError(f"Expected images, got the text {data!r}; recollect.load({data!r}) opens a source.")
        held = read_form(data)
        ids = tuple(ids) or held.ids
        if held.values.dtype != torch.uint8:
            return cls(held.values, ids, name, held.columns)
        check_8_bit(int(held.values.max()), "This set")
        return cls.from_uint8(held.values, ids, name)

    @property
    def pixels(self) -> Tensor:
        """All pixels as float32 in [0, 1]."""
        return as_float32(self.stored)

    def pixels_at(self, positions: Tensor) -> Tensor:
        """Return the pixels of some images, without making Images of them."""
        return as_float32(self.stored_at(positions))

    @property
    def stored(self) -> Tensor:
        """All values as they are kept: 8-bit, or float32 in [0, 1]."""
        return self._stored.read()

    def stored_at(self, positions: Tensor | slice) -> Tensor:
        """Return the values of some images as they are kept."""
        return self._stored.read(positions)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one image: channels, height, width; of a signal channels, length; of a row its length."""
        return self._stored.shape[1:]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width; signals and rows, which have none, are refused."""
        if len(self.shape) != 3:
            raise InputError(f"This takes images, C x H x W; {self.name} holds {self.kind}.")
        channels, height, width = self.shape
        return channels, height, width

    @property
    def kind(self) -> str:
        """What these are: images, signals or rows."""
        return KINDS[len(self.shape)]

    @property
    def has_names(self) -> bool:
        """Whether the columns of rows have names, and not only numbers."""
        return bool(self.columns) and self.columns != tuple(map(str, range(len(self.columns))))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of shape and float32 pixels: equal exactly when the pixels are, however they are stored."""
        digest = hashlib.sha256(repr(tuple(self._stored.shape)).encode())
        for rows in pieces(len(self), self.shape):
            _update(digest, self.stored_at(rows))
        return digest.hexdigest()

    def __len__(self) -> int:
        return self._stored.shape[0]

    def __getitem__(self, index: Any) -> Images:
        """Select images by a position, a slice, a list of positions or a boolean mask; the result is Images."""
        selected = object.__new__(Images)
        if isinstance(index, slice) and (index.step or 1) > 0:  # a view of the pixels, not a copy
            selected._stored, selected.ids = self._stored.select(index), self.ids[index]
        else:
            positions = np.atleast_1d(np.arange(len(self))[index]).copy()  # torch takes no reversed view
            selected._stored = self._stored.select(positions)
            selected.ids = tuple(self.ids[p] for p in positions)
        selected.name, selected.columns = self.name, self.columns
        if not len(selected):
            raise InputError(f"That selection leaves none of the {len(self)} images.")
        return selected

    def spread(self, count: int) -> np.ndarray:
        """Positions of so many images, or of all if there are fewer, evenly spaced over the set."""
        return np.linspace(0, len(self) - 1, min(count, len(self))).round().astype(int)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"Images({self.name!r}, {len(self)} of {size}, sha256 {self.hash[:12]})"


def check_alike(train: Images, control: Images) -> None:
    """Refuse control images of another size or kind than the training images, and rows of other columns."""
    if train.shape != control.shape:
        sizes = " and ".join(f"{images.kind} of {'x'.join(map(str, images.shape))}" for images in (train, control))
        raise InputError(f"Training and control images differ in size ({sizes}); control images must be alike.")
    if train.has_names and control.has_names and train.columns != control.columns:
        pairs = zip(train.columns, control.columns, strict=True)
        number, (first, other) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
        raise InputError(
            f"Training and control rows have different columns: number {number} is {first!r} and {other!r}. Give both "
            "the same columns in the same order; of a table ?columns=A+B takes them so."
        )


def as_float32(stored: Tensor) -> Tensor:
    """Return values as pixels: 8-bit ones are divided by 255."""
    return stored if stored.is_floating_point() else stored.to(torch.float32) / 255


def _update(digest: Any, values: Tensor) -> None:
    for few in values.split(1024):  # 8-bit sets are never all floats at once
        digest.update((as_float32(few) + 0.0).contiguous().numpy())  # + 0.0: -0 is 0


_VALUES = {4: "Pixels", 3: "Values of signals", 2: "Values of rows"}
_STATE_RANGE = (
    "State the range that they have: a file takes ?range=LOW,HIGH or, from a file for each column or channel, "
    "?range=FILE; in Python use (values - low) / (high - low)."
)


class _ColourAmongGrey(Exception):
    """A set whose first images are grey has colour ones too."""


def _check_piece(values: Tensor, shape: tuple[int, ...], start: int) -> None:
    """Check values that were read from disk, from the image at `start` on, against the shape of the set."""
    if values.shape[1:] != shape[1:]:
        if values.ndim == len(shape) == 4 and values.shape[2:] == shape[2:] and shape[1] == 1:
            raise _ColourAmongGrey
        first, other = ("x".join(map(str, one)) for one in (shape[1:], values.shape[1:]))
        raise InputError(f"The images differ in size: the first is {first}, those from number {start} on are {other}.")
    if values.dtype != torch.uint8:
        _check_pixels(values, start)


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
    if pixels.ndim not in (2, 3, 4):
        raise InputError(f"Shape {tuple(pixels.shape)} holds no images; {EXPECTED}.")
    if 0 in pixels.shape:
        raise InputError(f"There are no images here: shape {tuple(pixels.shape)} is empty.")
    if looks_like_one_image(tuple(pixels.shape)):
        raise InputError(one_image(tuple(pixels.shape)))
    if pixels.ndim == 4 and pixels.shape[1] not in CHANNELS:
        hint = " They look channels-last: use pixels.permute(0, 3, 1, 2)." if pixels.shape[3] in CHANNELS else ""
        if pixels.shape[3] - 1 in CHANNELS:
            hint = f" If the last of {pixels.shape[3]} channels, which come last, is transparency, leave it out."
        raise InputError(f"Expected 1 or 3 channels, found {pixels.shape[1]} in shape {tuple(pixels.shape)}.{hint}")


def _check_columns(columns: Sequence[str], shape: tuple[int, ...]) -> tuple[str, ...]:
    if columns and (len(shape) != 1 or len(columns) != shape[0] or len(set(columns)) != len(columns)):
        raise InputError(f"{len(columns)} names of columns were given for values of shape {shape}; give one a column.")
    return tuple(columns)


def check_8_bit(largest: int, name: str) -> None:
    """Refuse zeros and ones, which would all but vanish as 0 to 255; all zeros are black in both forms."""
    if largest == 1:
        raise InputError(f"{name} holds 8-bit values of only 0 and 1; take them as float32 in [0, 1].")


def _check_pixels(pixels: Tensor, start: int = 0) -> None:
    """Refuse values that are no pixels; `start` is the number of the first image, for the error."""
    _check_shape(pixels)
    pixels = pixels.detach()
    _check_floating_point(pixels)
    finite = torch.isfinite(pixels)
    if not bool(finite.all()):
        first = start + int((~finite).flatten(1).any(1).nonzero()[0])
        one = KINDS[pixels.ndim - 1].removesuffix("s")
        raise InputError(
            f"{_VALUES[pixels.ndim]} must be finite; found {counted(int((~finite).sum()), 'NaN or infinite value')}, "
            f"the first in {one} {first}."
        )
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        hint = _range_hint(low, high, pixels.ndim)
        raise InputError(f"{_VALUES[pixels.ndim]} must lie in [0, 1]; found [{low:.8g}, {high:.8g}]. {hint}")


def _check_floating_point(pixels: Tensor) -> None:
    if pixels.is_sparse or pixels.is_meta:
        kind = "a sparse tensor" if pixels.is_sparse else "a tensor without values (device meta)"
        raise InputError(f"Pixels must be floating point in [0, 1], got {kind}.")
    if pixels.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return
    hint = "."
    if pixels.ndim < 4:
        hint = f". {_STATE_RANGE}"
    elif _holds_bytes(pixels):
        hint = "; this looks like 0-255 data: divide by 255 (a file takes ?range=0,255)."
    elif pixels.dtype in (torch.uint16, torch.int16, torch.int32, torch.int64):
        hint = "; divide by the largest value that a pixel can have, such as 65535 (a file takes ?range=0,65535)."
    raise InputError(f"{_VALUES[pixels.ndim]} must be floating point in [0, 1], got {pixels.dtype}{hint}")


def _holds_bytes(pixels: Tensor) -> bool:
    if pixels.dtype in (torch.bool, torch.uint64) or pixels.is_complex() or pixels.is_floating_point():
        return False
    return 1 < int(pixels.to(torch.int64).max()) <= 255


def _range_hint(low: float, high: float, dimensions: int) -> str:
    if dimensions < 4:
        return _STATE_RANGE
    if low >= 0 and 1.5 < high <= 255:
        return "This looks like 0-255 data: divide by 255 (a file takes ?range=0,255)."
    if low > -0.05 and high < 1.05:
        return "They stick out a little: use pixels.clamp(0, 1)."
    if -1 <= low < 0 and high <= 1:
        return "This looks like [-1, 1] data: use (pixels + 1) / 2 (a file takes ?range=-1,1)."
    return "This looks normalised: undo it (pixels * std + mean) or clamp."
