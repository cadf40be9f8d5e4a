"""What a prior was trained on, so that contamination can be stated: does it know the images that are audited?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.images import Images
from recollect.records import atomically, read_json, write_json

CARD, HASHES = "recollect-prior.json", "training-images.npy"
FORMAT = "recollect-prior-1"
GRID, BITS = 8, 128  # images are compared by the signs of 128 projections of their averages over 8 x 8 cells
NEAR_BITS = 6  # at most so many signs differ between copies of one image (another JPEG quality, another size)
_AT_ONCE = 1024


@dataclass(frozen=True)
class Overlap:
    """How many of some images a prior was trained on: pixel for pixel, or in a copy (or its mirror) nearly the same."""

    exact: int
    near: int
    total: int

    def __str__(self) -> str:
        if not self.exact and not self.near:
            return f"none of {self.total}"
        return f"{self.exact} of {self.total} exactly and {self.near} more in a nearly equal copy"


@dataclass(frozen=True, eq=False)
class Card:
    """What a prior was trained on, with a hash of each image's content and of its looks."""

    trained_on: str
    images: int
    images_hash: str
    content: np.ndarray  # uint64, one an image
    looks: np.ndarray  # uint8, BITS / 8 an image
    training: Mapping[str, Any] = field(default_factory=dict)  # recipe, steps, seconds, versions

    @classmethod
    def of(cls, images: Images, about: str = "", training: Mapping[str, Any] | None = None) -> Card:
        content, looks, _ = fingerprints(images)
        return cls(about or images.name, len(images), images.hash, content, looks, training or {})

    def overlap(self, images: Images) -> Overlap:
        """How many of these images it was trained on."""
        exact, near = self.matches(images)
        return Overlap(int(exact.sum()), int((near & ~exact).sum()), len(images))

    def matches(self, images: Images) -> tuple[np.ndarray, np.ndarray]:
        """Which of these images it was trained on: pixel for pixel, and in looks, mirrored ones too."""
        content, *both = fingerprints(images)
        nearest = np.minimum(*(_nearest(looks, self.looks) for looks in both))
        return np.isin(content, self.content), nearest <= NEAR_BITS

    def write(self, folder: Path) -> None:
        with atomically(folder / HASHES) as file, file.open("wb") as opened:
            np.save(opened, np.concatenate([self.content.view(np.uint8).reshape(-1, 8), self.looks], axis=1))
        facts = {k: v for k, v in asdict(self).items() if k not in ("content", "looks")}
        write_json(folder / CARD, {"format": FORMAT, **facts})

    @classmethod
    def read(cls, folder: Path) -> Card | None:
        """The card in a prior's folder; None where there is none."""
        if not (folder / CARD).exists():
            return None
        facts = read_json(folder / CARD)
        try:
            if facts.pop("format") != FORMAT:
                raise ValueError("of another version")
            hashes = np.load(folder / HASHES, allow_pickle=False)
            if hashes.dtype != np.uint8 or hashes.shape != (facts["images"], 8 + BITS // 8):
                raise ValueError(f"{HASHES} does not hold a hash for each of its images")
            return cls(content=hashes[:, :8].copy().view(np.uint64)[:, 0], looks=hashes[:, 8:], **facts)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise InputError(f"The card of the prior in {folder} cannot be read: {error}.") from None


def without(images: Images, others: Images) -> Images:
    """The images of which there is no copy, equal or nearly so, among the others. All ways round are compared: two
    images may differ in more bits when one is mirrored than when the other is."""
    content, *own = fingerprints(images)
    other_content, *other = fingerprints(others)
    nearest = np.min([_nearest(a, b) for a in own for b in other], axis=0)
    return images[~np.isin(content, other_content) & (nearest > NEAR_BITS)]


def fingerprints(images: Images) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per image: 64 bits of a hash of its pixels, BITS signs that nearly equal images share, and its mirror image's."""
    content, looks, mirrored = [], [], []
    for pixels in _parts(images):
        content += [hashlib.sha256((image + 0.0).numpy().tobytes()).digest()[:8] for image in pixels]  # + 0.0: -0 is 0
        looks.append(_looks(pixels))
        mirrored.append(_looks(pixels.flip(3)))
    return np.frombuffer(b"".join(content), np.uint64), np.concatenate(looks), np.concatenate(mirrored)


def _parts(images: Images) -> Iterator[Tensor]:
    """The pixels, some images at a time to spare memory."""
    return (images[start : start + _AT_ONCE].pixels for start in range(0, len(images), _AT_ONCE))


def _looks(pixels: Tensor) -> np.ndarray:
    return np.packbits(_signs(pixels), axis=1)


def _signs(pixels: Tensor) -> np.ndarray:
    """Signs of fixed random projections of coarse averages, brightness taken out; grey counts as colour."""
    cells = torch.nn.functional.adaptive_avg_pool2d(pixels.double(), GRID).expand(-1, 3, -1, -1).flatten(1).numpy()
    cells = cells - cells.mean(1, keepdims=True)
    directions = np.random.default_rng(0).standard_normal((cells.shape[1], BITS))
    return cells @ directions > 0


def _nearest(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of some, in how many bits the most similar of the others differs."""
    signs = [torch.from_numpy(np.unpackbits(rows, axis=1)).float() * 2 - 1 for rows in (some, others)]
    agreement = [(part @ signs[1].T).amax(1) for part in signs[0].split(_AT_ONCE)]
    return ((BITS - torch.cat(agreement)) / 2).numpy()
