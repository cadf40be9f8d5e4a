"""Random draws that belong to an image: the same wherever it stands and whatever stands beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from torch import Tensor

from recollect.devices.transfers import to_host

BLOCK = 32  # images hashed by a thread at a time
HELD = 8 * BLOCK  # of them on the host at a time, if they lie elsewhere
THREADS = 4  # more wait for one another


def own_draws(images: Tensor, seed: int) -> Iterator[np.random.Generator]:
    """One random generator an image, seeded by its own content (as float32) and `seed`."""
    yield from (np.random.default_rng(own) for own in _own_seeds(images, seed))


def own_bytes(images: Tensor, seed: int, count: int) -> np.ndarray:
    """So many random bytes an image: what `integers(0, 256, count, np.uint8)` of its generator gives, in less time."""
    words = np.empty((len(images), -(-count // 8)), "<u8")
    for row, own in zip(words, _own_seeds(images, seed), strict=True):
        row[:] = np.random.PCG64(own).random_raw(len(row))
    return words.view(np.uint8)[:, :count]


def _own_seeds(images: Tensor, seed: int) -> list[int]:
    key = str(seed).encode()

    def digests(rows: np.ndarray) -> list[bytes]:
        return [hashlib.blake2b(row, digest_size=16, key=key).digest() for row in rows]

    all_digests: list[bytes] = []
    with ThreadPoolExecutor(THREADS) as pool:  # hashing lets others run, making generators does not: first the one
        for part in images.detach().split(HELD):
            rows = to_host(part.float()).contiguous().numpy()
            blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
            all_digests += [digest for block in pool.map(digests, blocks) for digest in block]
    return [int.from_bytes(digest, "little") for digest in all_digests]
