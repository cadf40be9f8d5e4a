"""What every degradation is: three methods for the solvers, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.per_image import PerImage

Shape = tuple[int, ...]  # channels, height, width; of signals channels, length; of rows the number of columns


@dataclass(frozen=True, eq=False)
class Degradation(PerImage):
    """A known or estimated operator H for each image of a batch, or one for all: length 1.

    A subclass is a frozen dataclass whose tensor fields have the images first. It implements `apply`, `prox` and
    `refit`. The rest is derived from the fields, so a new degradation is one new file. One with a `name` is asked for
    by that name, and `parse` reads the text after the colon: `blur:1.5` is `Blur.parse("1.5", shape)`.

    Attributes:
        name: How audits and the command line ask for it.
        summary: One line for help and docs.
        example: A name and value that work, such as `blur:1.5`.
        order: Position in help.

    Examples:
        >>> import recollect
        >>> isinstance(recollect.mask("half", (3, 8, 8)), recollect.Degradation)
        True
    """

    name: ClassVar[str] = ""  # how audits and the command line ask for it
    summary: ClassVar[str] = ""  # one line for help and docs
    example: ClassVar[str] = ""  # a name and value that work, such as blur:1.5
    order: ClassVar[int] = 100  # position in help

    @classmethod
    def parse(cls, value: str, shape: Shape) -> Degradation:
        """Make the degradation from the text after its name and colon, for images of a shape."""
        raise NotImplementedError

    def apply(self, x: Tensor) -> Tensor:
        """Compute H x.

        Args:
            x: Images, one for each operator.

        Returns:
            The damaged images.
        """
        raise NotImplementedError

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        """Return the x that minimises |H x - y|^2 + gamma/2 |x - z|^2.

        Args:
            z: Where x should be near.
            y: The damaged images.
            gamma: The weight of z.

        Returns:
            The minimiser, in the shape of y.
        """
        raise NotImplementedError

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """Return the H of this family that minimises |H x - y|^2, as a new object.

        Args:
            x: Estimates of the images.
            y: The damaged images.

        Returns:
            A new degradation of the same class.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        """Say in an audit's settings what was done to the images; by default the summary."""
        return self.summary or type(self).__name__

    def paste(self, x: Tensor, y: Tensor) -> Tensor:  # noqa: ARG002  (for those that override it)
        """Put into x what y says for certain where there is no noise; by default nothing is certain."""
        return x

    @classmethod
    def first_guess(cls, y: Tensor) -> Degradation:
        """Return the start of an audit's blind methods in this family; erasures have starts of their own."""
        raise NotImplementedError

    def plausible_refit(self, x: Tensor, y: Tensor) -> Degradation:
        """Return the H that minimises |H x - y|^2 among those met in practice; by default the whole family."""
        return self.refit(x, y)

    def of_images(self, rows: Any) -> Self:
        """Return the operators of some images; one for all stays."""
        return self[rows] if len(self) > 1 else self

    def expand(self, images: Tensor) -> Self:
        """Return one operator for each of `images`, checked to fit them, without using memory."""
        if len(self) not in (1, len(images)):
            raise InputError(f"{len(self)} degradations were given for {len(images)} images; give one, or one each.")
        return self._map(lambda t: t.expand(len(images), *t.shape[1:]))

    def fingerprint(self) -> Tensor:
        """Return a 64-bit number an image, by which two estimates are compared.

        Equal operators have equal numbers; others have different ones, but for a chance of 2^-60.
        """
        hashes = [_hash_rows(t) * (2 * number + 1) for number, t in enumerate(self._rows().values())]
        return torch.stack(hashes).sum(0)


Start = Callable[[Tensor], Degradation]  # makes a blind method's first estimate from y


def check_images(name: str, shape: Sequence[int]) -> None:
    """Refuse damage that only images can have; `shape` is that of one image."""
    if len(shape) != 3:
        raise InputError(f"{name} is damage to images, C x H x W; these have the shape {'x'.join(map(str, shape))}.")


def read_number(text: str, example: str) -> float:
    """Read the number of a degradation's value; `example` is for the error."""
    return _read(text, float, "a number", example)


def read_whole_number(text: str, example: str) -> int:
    """Read the whole number of a degradation's value; `example` is for the error."""
    return _read(text, int, "a whole number", example)


def _read(text: str, kind: type, expected: str, example: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{text!r} is not {expected}; write for example {example}.") from None


def _hash_rows(values: Tensor) -> Tensor:
    """Hash each row's bytes, read as 64-bit words, by multiplying and summing."""
    octets = values.reshape(len(values), -1).contiguous().view(torch.uint8)
    octets = torch.nn.functional.pad(octets, (0, -octets.shape[1] % 8))
    words = octets.contiguous().view(torch.int64) * -7046029254386353131  # spreads bits upwards ...
    words = words ^ (words >> 32)  # ... and folds them down, so that no bit is lost in the product below
    return (words * _weights(words.shape[1], words.device)).sum(1)


@lru_cache(maxsize=8)
def _weights(count: int, device: torch.device) -> Tensor:
    """Return odd numbers, the same everywhere.

    They stay on the device, since a transfer every round would wait for it. This transfer does wait, because other
    streams read them too.
    """
    info = np.iinfo(np.int64)
    return torch.from_numpy(np.random.default_rng(0).integers(info.min, info.max, count) | 1).to(device)
