"""Random draws that belong to an image: the same wherever it stands and whatever stands beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor


def own_draws(images: Tensor, seed: int) -> Iterator[np.random.Generator]:
    """One random generator an image, seeded by its own content (as float32) and `seed`."""
    for image in images.detach().to("cpu", torch.float32):
        digest = hashlib.blake2b(image.numpy().tobytes(), digest_size=16, key=str(seed).encode())
        yield np.random.default_rng(int.from_bytes(digest.digest(), "little"))
