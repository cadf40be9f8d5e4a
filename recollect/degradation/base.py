"""What every degradation is: three methods for the solvers, and a fingerprint to tell two estimates apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.per_image import PerImage


@dataclass(frozen=True, eq=False)
class Degradation(PerImage):
    """A known or estimated operator H for each image of a batch (or one for all: length 1).

    A subclass is a frozen dataclass whose tensor fields have the images first, with the three methods below.
    The rest is derived from the fields, so a new degradation is one new file.
    """

    def apply(self, x: Tensor) -> Tensor:
        """H x."""
        raise NotImplementedError

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        """The x that minimises |H x - y|^2 + gamma/2 |x - z|^2."""
        raise NotImplementedError

    def refit(self, x: Tensor, y: Tensor) -> Self:
        """The H of this family that minimises |H x - y|^2: a new object."""
        raise NotImplementedError

    def paste(self, x: Tensor, y: Tensor) -> Tensor:  # noqa: ARG002  (for those that override it)
        """x with what y says for certain put in: right when there is no noise; by default nothing is certain."""
        return x

    @classmethod
    def first_guess(cls, y: Tensor) -> Degradation:
        """Where an audit's blind methods start in this family; for erasures they have starts of their own."""
        raise NotImplementedError

    def plausible_refit(self, x: Tensor, y: Tensor) -> Degradation:
        """The H that minimises |H x - y|^2 among those that are met in practice; by default the whole family."""
        return self.refit(x, y)

    def expand(self, images: Tensor) -> Self:
        """One operator for each of `images`, checked to fit them; costs no memory."""
        if len(self) not in (1, len(images)):
            raise InputError(f"{len(self)} degradations were given for {len(images)} images; give one, or one each.")
        return self._map(lambda t: t.expand(len(images), *t.shape[1:]))

    def fingerprint(self) -> Tensor:
        """A 64-bit number an image: equal operators have equal ones, others differ but for a 2^-60 chance."""
        hashes = [_hash_rows(t) * (2 * number + 1) for number, t in enumerate(self._rows().values())]
        return torch.stack(hashes).sum(0)


Start = Callable[[Tensor], Degradation]  # makes a blind method's first estimate from y


def _hash_rows(values: Tensor) -> Tensor:
    """Multiply-and-sum hash of each row's bytes, read as 64-bit words."""
    octets = values.reshape(len(values), -1).contiguous().view(torch.uint8)
    octets = torch.nn.functional.pad(octets, (0, -octets.shape[1] % 8))
    words = octets.contiguous().view(torch.int64) * -7046029254386353131  # spreads bits upwards ...
    words = words ^ (words >> 32)  # ... and folds them down, so that no bit is lost in the product below
    return (words * _weights(words.shape[1], words.device)).sum(1)


@lru_cache(maxsize=8)
def _weights(count: int, device: torch.device) -> Tensor:
    """Odd numbers, the same everywhere; kept on the device, since a transfer would wait for it every round. This one
    does wait: other streams read them too."""
    info = np.iinfo(np.int64)
    return torch.from_numpy(np.random.default_rng(0).integers(info.min, info.max, count) | 1).to(device)
