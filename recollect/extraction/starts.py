"""Where the search for attractors of an autoencoder starts: images that hold nothing of the training set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from recollect.images import Images

Shape = tuple[int, int, int]


def _noise(rng: np.random.Generator, shape: Shape) -> Tensor:
    return torch.from_numpy(rng.random(shape, np.float32))


def _constant(rng: np.random.Generator, shape: Shape) -> Tensor:
    return _noise(rng, (shape[0], 1, 1)).expand(shape)


def _smooth(rng: np.random.Generator, shape: Shape) -> Tensor:
    """Enlarge a little noise, with a contrast of its own."""
    side = int(rng.integers(2, max(3, shape[1] // 2 + 1)))
    low, high = np.sort(rng.random(2)).tolist()
    large = functional.interpolate(_noise(rng, (shape[0], side, side))[None], size=shape[1:], mode="bilinear")[0]
    return low + (high - low) * large


def _blend(rng: np.random.Generator, shape: Shape) -> Tensor:
    share = float(rng.random())
    return share * _smooth(rng, shape) + (1 - share) * _noise(rng, shape)


Draw = Callable[[np.random.Generator, Shape], Tensor]
KINDS: Mapping[str, Draw] = {"noise": _noise, "constant": _constant, "smooth": _smooth, "blend": _blend}
OF_UNSEEN = ("unseen image", "blend of unseen images")


def kinds_of_starts(count: int, *, with_unseen: bool) -> list[str]:
    """Name the kind of each start."""
    names = list(KINDS)
    if with_unseen:
        names += OF_UNSEEN
    return [names[number % len(names)] for number in range(count)]


def starts(count: int, shape: Shape, seed: int, unseen: Images | None = None) -> Tensor:
    """Draw starts of all kinds in turn; with unseen images these and blends of two of them too.

    A start depends on its number and the seed alone.
    """
    kinds = [*KINDS.values()]
    if unseen is not None:
        pixels = unseen.pixels
        kinds += [lambda rng, _: pixels[int(rng.integers(len(pixels)))], lambda rng, _: _blend_of_two(rng, pixels)]
    generators = (np.random.default_rng((seed, number)) for number in range(count))
    return torch.stack([kinds[n % len(kinds)](rng, shape).contiguous() for n, rng in enumerate(generators)])


def _blend_of_two(rng: np.random.Generator, pixels: Tensor) -> Tensor:
    first, second = (pixels[int(position)] for position in rng.integers(len(pixels), size=2))
    return torch.lerp(first, second, float(rng.random()))
