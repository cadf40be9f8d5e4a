"""Make canaries: draw the images, then, independently of them, a fair coin for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recollect.canaries.canary_set import CanarySet, canary_names, known_names
from recollect.canaries.collage import draw_collages
from recollect.canaries.design import Design, check_draw
from recollect.errors import check_seed
from recollect.images import Images
from recollect.sources import load

KNOWN = 8  # canaries that are always in, on which the settings of an attack are chosen
REPEATS = (1, 4, 16)


def make_canaries(
    like: Any, count: int = 200, *, repeats: Sequence[int] = REPEATS, seed: int = 42, delta: float = 1e-5
) -> CanarySet:
    """Draw canaries like the images of a source, with a fair coin for each: in the training set, or out.

    Args:
        like: A source address, a path or images.
        count: Number of canaries.
        repeats: How often a canary is in the training set; each number gets an equal share of the canaries.
        seed: Seed of the images and the coins.
        delta: Of the bound on epsilon, which is fixed here, before training.

    Returns:
        The canaries with their coins.

    Examples:
        >>> from recollect.canaries import make_canaries
        >>> canaries = make_canaries("photos?count=8&size=8", 20, repeats=(1,))
        >>> len(canaries.train) + len(canaries.control)
        20
    """
    check_draw(count, repeats)
    check_seed(seed)
    source = load(like) if isinstance(like, (str, Path)) else Images.of(like)
    of_images, of_coins = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    drawn = draw_collages(source, count + KNOWN, of_images)
    return CanarySet(
        Images(drawn[:count].pixels, canary_names(count)),
        inside=of_coins.random(count) < 0.5,
        repeats=np.resize(np.asarray(repeats), count),
        known=Images(drawn[count:].pixels, known_names(KNOWN)),
        known_repeats=max(repeats),
        design=Design(delta),
        seed=seed,
        like=source.name,
    )
