"""Choosing gamma and the start mask for a model nobody has tried: on images that are then left out of the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.degradation import Start, all_erased, half_kept, mask, observe
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind
from recollect.scoring import Score

GAMMAS = (0.1, 0.5, 1.0)
STARTS = (half_kept, all_erased)
START_NAMED = {start.__name__: start for start in STARTS}
MASKS = ("block", "dust")
ROUNDS = 25  # a short run tells good settings from bad
FEWEST, MOST = 4, 32  # images that are spent on it, a tenth of the set between these


@dataclass(frozen=True)
class Tuning:
    """Which images were spent on the search, and what every setting gave on them."""

    images: list[str]
    masks: list[str]
    tried: list[dict[str, Any]]

    @property
    def best(self) -> Blind:
        """The settings that recovered most accurately, then approximately, then by mean PSNR."""
        row = max(self.tried, key=lambda r: (r["accurate"], r["approximate"], r["mean_psnr"]))
        return Blind(gamma=row["gamma"], start=START_NAMED[row["start"]])


def set_apart(images: Images) -> Images:
    """Images to tune on, evenly spaced over the set."""
    size = min(MOST, max(FEWEST, len(images) // 10))
    if len(images) < 2 * size:
        raise InputError(
            f"Choosing gamma and start takes {size} training images, which are then left out of the score, and there "
            f"are only {len(images)}; give both yourself, for example gamma=0.5 and start='half_kept'."
        )
    return images[images.spread(size)]


def masks_to_tune_on(asked: Mapping[str, Any]) -> list[str]:
    """Two of the masks of the audit, where they can be made for any number of images."""
    names = [what for what in asked.values() if isinstance(what, str)]
    return list(MASKS) if set(MASKS) <= set(names) or not names else names[:2]


def try_setting(
    f: Any, images: Images, blind: Blind, masks: Sequence[str], *, noise_std: float, seed: int, chunk: int | None = None
) -> dict[str, Any]:
    """What these settings recover of these images, averaged over the masks."""
    merits = []
    for name in masks:
        truth = mask(name, images.shape, count=len(images), seed=seed)
        seen = observe(images, truth, noise_std=noise_std, seed=seed)
        score = Score.of(blind(f, seen.y, chunk=chunk).estimate, images.pixels)
        merits.append((score.accurate.value, score.approximate.value, max(score.mean_psnr, -1e3)))
    accurate, approximate, psnr = (sum(m) / len(m) for m in zip(*merits, strict=True))
    start = getattr(blind.start, "__name__", str(blind.start))
    rates = {"accurate": accurate, "approximate": approximate, "mean_psnr": psnr}
    return {"gamma": blind.gamma, "start": start, **rates}


def candidates(gammas: Sequence[float], starts: Sequence[Start]) -> list[Blind]:
    return [Blind(gamma=g, start=s, limit=ROUNDS) for g in gammas for s in starts]
