"""Random draws that belong to an image: the same wherever it stands and whatever stands beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

BLOCK = 32  # images hashed by a thread at a time
THREADS = 4  # more wait for one another


def own_draws(images: Tensor, seed: int) -> Iterator[np.random.Generator]:
    """One random generator an image, seeded by its own content (as float32) and `seed`."""
    rows = images.detach().to("cpu", torch.float32).contiguous().numpy()
    key = str(seed).encode()

    def digests(start: int) -> list[bytes]:
        return [hashlib.blake2b(row, digest_size=16, key=key).digest() for row in rows[start : start + BLOCK]]

    with ThreadPoolExecutor(THREADS) as pool:  # hashing lets others run, making generators does not: first the one
        found = [digest for block in pool.map(digests, range(0, len(rows), BLOCK)) for digest in block]
    yield from (np.random.default_rng(int.from_bytes(digest, "little")) for digest in found)
