"""Canaries in memory: the images, the coin and the number of repeats of each, and the hash that commits to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.canaries.design import Design
from recollect.images import Images


@dataclass(frozen=True, eq=False)
class CanarySet:
    """Canaries with their coins; `known` ones are always in, and only choose the settings of an attack.

    Args:
        images: The canaries.
        inside: The coins: True puts a canary into the training set.
        repeats: How often each is in the training set, or would be.
        known: Canaries that are always in the training set.
        known_repeats: How often these are in it.
        design: The numbers of guesses, delta and confidence.
        seed: Seed of the images and the coins.
        like: Name of the source.

    Examples:
        >>> from recollect.canaries import make_canaries
        >>> canaries = make_canaries("photos?count=8&size=8", 20, repeats=(1,))
        >>> len(canaries.training_images) == len(canaries.train) + 8
        True
    """

    images: Images
    inside: np.ndarray  # bool: the coins
    repeats: np.ndarray  # how often each is in the training set, or would be
    known: Images
    known_repeats: int
    design: Design
    seed: int
    like: str

    @property
    def train(self) -> Images:
        """The canaries that were put into the training set, each once."""
        return _named(self.images[self.inside], "canaries in")

    @property
    def control(self) -> Images:
        """The canaries that were left out."""
        return _named(self.images[~self.inside], "canaries out")

    @property
    def repeats_of(self) -> dict[str, int]:
        """The number of repeats of each canary, by id."""
        return dict(zip(self.images.ids, self.repeats.tolist(), strict=True))

    @property
    def training_images(self) -> Images:
        """All that is to be added to the training set: canaries that are in and known ones, repeated."""
        pixels: list[Tensor] = []
        ids: list[str] = []
        known_repeats = np.full(len(self.known), self.known_repeats)
        for images, repeats in ((self.images, self.repeats * self.inside), (self.known, known_repeats)):
            for position, count in enumerate(repeats.tolist()):
                pixels += [images[position].pixels] * count
                ids += [copy_name(images.ids[position], copy) for copy in range(1, count + 1)]
        return Images(torch.cat(pixels), ids, "canaries to train on")

    @cached_property
    def commitment(self) -> str:
        """SHA-256 of all pixels, coins, repeats and the design: whoever has it before training can check them all."""
        text = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def content(self) -> dict[str, Any]:
        """Give everything that the commitment covers, as plain values; pixels by their hashes."""
        coins = zip(hashes(self.images), self.inside.tolist(), self.repeats.tolist(), strict=True)
        return {
            "seed": self.seed,
            "like": self.like,
            **self.design.facts(),
            "canaries": [{"sha256": digest, "in": coin, "repeats": count} for digest, coin, count in coins],
            "known": list(hashes(self.known)),
            "known_repeats": self.known_repeats,
        }


def hashes(images: Images) -> Iterator[str]:
    """Hash the pixels of each image."""
    yield from (images[position].hash for position in range(len(images)))


def canary_names(count: int) -> tuple[str, ...]:
    """Name the canaries whose coins are tossed, by their position: no name in a file is ever used as a path."""
    return tuple(f"canary-{number:04}" for number in range(count))


def known_names(count: int) -> tuple[str, ...]:
    """Name the canaries that are always in."""
    return tuple(f"known-{number:04}" for number in range(count))


def copy_name(name: str, copy: int) -> str:
    """Name a copy of a canary in the training set."""
    return f"{name}-{copy:02}"


def _named(images: Images, name: str) -> Images:
    images.name = name
    return images
