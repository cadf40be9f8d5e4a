"""The card of a prior: what it was trained on, so that an audit can say whether it knows the audited images."""

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
    """How many images of a set a prior was trained on: pixel for pixel, or in a nearly equal or mirrored copy."""

    exact: int
    near: int
    total: int

    def __str__(self) -> str:
        if not self.exact and not self.near:
            return f"none of {self.total}"
        return f"{self.exact} of {self.total} exactly and {self.near} more in a nearly equal copy"


@dataclass(frozen=True, eq=False)
class Card:
    """What a prior was trained on, with two hashes of each image: of its pixels, and a perceptual one."""

    trained_on: str
    images: int
    images_hash: str
    content: np.ndarray  # uint64, one an image
    perceptual: np.ndarray  # uint8, BITS / 8 an image
    training: Mapping[str, Any] = field(default_factory=dict)  # recipe, steps, seconds, versions

    @classmethod
    def of(cls, images: Images, about: str = "", training: Mapping[str, Any] | None = None) -> Card:
        """Make the card of a prior that was trained on these images."""
        content, perceptual, _ = fingerprints(images)
        return cls(about or images.name, len(images), images.hash, content, perceptual, training or {})

    def overlap(self, images: Images) -> Overlap:
        """Count the images that the prior was trained on."""
        exact, near = self.matches(images)
        return Overlap(int(exact.sum()), int((near & ~exact).sum()), len(images))

    def matches(self, images: Images) -> tuple[np.ndarray, np.ndarray]:
        """Return which images the prior was trained on: exactly, and nearly (mirrored ones too)."""
        content, *both = fingerprints(images)
        nearest = np.minimum(*(_nearest(hashes, self.perceptual) for hashes in both))
        return np.isin(content, self.content), nearest <= NEAR_BITS

    def write(self, folder: Path) -> None:
        """Write the card into a prior's folder."""
        with atomically(folder / HASHES) as file, file.open("wb") as opened:
            np.save(opened, np.concatenate([self.content.view(np.uint8).reshape(-1, 8), self.perceptual], axis=1))
        facts = {k: v for k, v in asdict(self).items() if k not in ("content", "perceptual")}
        write_json(folder / CARD, {"format": FORMAT, **facts})

    @classmethod
    def read(cls, folder: Path) -> Card | None:
        """Read the card in a prior's folder; None if the folder has none."""
        if not (folder / CARD).exists():
            return None
        facts = read_json(folder / CARD)
        try:
            if facts.pop("format") != FORMAT:
                raise ValueError("of another version")
            hashes = np.load(folder / HASHES, allow_pickle=False)
            if hashes.dtype != np.uint8 or hashes.shape != (facts["images"], 8 + BITS // 8):
                raise ValueError(f"{HASHES} does not hold a hash for each of its images")
            return cls(content=hashes[:, :8].copy().view(np.uint64)[:, 0], perceptual=hashes[:, 8:], **facts)
        except Exception as error:  # numpy reads a header with Python's own tokenizer, which has errors of its own
            raise InputError(f"The card of the prior in {folder} cannot be read: {error}.") from None


def without(images: Images, others: Images) -> Images:
    """Leave out images that have an equal or nearly equal copy among the others.

    Both are compared as they are and mirrored: two images may differ in more bits when one is mirrored than when the
    other is.
    """
    content, *own = fingerprints(images)
    other_content, *other = fingerprints(others)
    nearest = np.min([_nearest(a, b) for a in own for b in other], axis=0)
    return images[~np.isin(content, other_content) & (nearest > NEAR_BITS)]


def fingerprints(images: Images) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hash each image: 64 bits of its pixels, BITS signs that nearly equal images share, and those of its mirror."""
    content, perceptual, mirrored = [], [], []
    for pixels in _parts(images):
        content += [hashlib.sha256((image + 0.0).numpy().tobytes()).digest()[:8] for image in pixels]  # + 0.0: -0 is 0
        perceptual.append(_perceptual(pixels))
        mirrored.append(_perceptual(pixels.flip(3)))
    return np.frombuffer(b"".join(content), np.uint64), np.concatenate(perceptual), np.concatenate(mirrored)


def _parts(images: Images) -> Iterator[Tensor]:
    """Yield the pixels in parts, to spare memory."""
    return (images[start : start + _AT_ONCE].pixels for start in range(0, len(images), _AT_ONCE))


def _perceptual(pixels: Tensor) -> np.ndarray:
    return np.packbits(_signs(pixels), axis=1)


def _signs(pixels: Tensor) -> np.ndarray:
    """Return signs of fixed random projections of coarse averages, without brightness; grey counts as colour."""
    cells = torch.nn.functional.adaptive_avg_pool2d(pixels.double(), GRID).expand(-1, 3, -1, -1).flatten(1).numpy()
    cells = cells - cells.mean(1, keepdims=True)
    directions = np.random.default_rng(0).standard_normal((cells.shape[1], BITS))
    return cells @ directions > 0


def _nearest(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Count, for each hash, the bits in which the most similar of the others differs."""
    signs = [torch.from_numpy(np.unpackbits(rows, axis=1)).float() * 2 - 1 for rows in (hashes, others)]
    agreement = [(part @ signs[1].T).amax(1) for part in signs[0].split(_AT_ONCE)]
    return ((BITS - torch.cat(agreement)) / 2).numpy()
