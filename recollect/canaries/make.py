"""Make canaries: draw the images, then, independently of them, a fair coin for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recollect.canaries.canary_set import CanarySet, canary_names, known_names
from recollect.canaries.collage import draw_collages
from recollect.canaries.design import Design
from recollect.errors import InputError, check_seed, is_whole
from recollect.images import Images
from recollect.sources import load

KNOWN = 8  # canaries that are always in, on which the settings of an attack are chosen
FEWEST = 20  # canaries for each number of repeats: fewer refute nothing
REPEATS = (1, 4, 16)


def make_canaries(
    like: Any, count: int = 200, *, repeats: Sequence[int] = REPEATS, seed: int = 42, delta: float = 1e-5
) -> CanarySet:
    """Draw canaries like the images of a source, with a fair coin for each: in the training set, or out.

    like: a source address, a path or images. repeats: how often a canary is in the training set; each number gets an
    equal share of the canaries. delta: of the bound on epsilon, which is fixed here, before training.
    """
    _check(count, repeats, seed)
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


def _check(count: int, repeats: Sequence[int], seed: int) -> None:
    check_seed(seed)
    if not repeats or not all(is_whole(number, 1) for number in repeats) or len(set(repeats)) < len(repeats):
        raise InputError(f"repeats are different whole numbers, 1 or more, such as 1,4,16; got {list(repeats)}.")
    least = FEWEST * len(repeats)
    if not is_whole(count, least):
        raise InputError(
            f"count is a number of canaries, {least} or more: {FEWEST} for each of {len(repeats)} numbers of repeats; "
            f"got {count!r}."
        )
