"""Choosing gamma and the start mask for a model nobody has tried: on images that are then left out of the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.degradation import all_erased, half_kept, mask, observe
from recollect.images import Images
from recollect.recovery import Blind
from recollect.scoring import Score

GAMMAS = (0.1, 0.5, 1.0)
STARTS = (half_kept, all_erased)
MASKS = ("block", "dust")
ROUNDS = 25  # a short run tells good settings from bad


@dataclass(frozen=True)
class Choice:
    """The settings chosen, and all that were tried with what they gave."""

    blind: Blind
    tried: list[dict[str, Any]]


def choose(
    f: Any, images: Images, *, masks: Sequence[str] = MASKS, progress: Callable[[int, int], None] | None = None
) -> Choice:
    """The settings that recover most of these images accurately, then approximately, then by mean PSNR."""
    tried: list[tuple[tuple[float, ...], Blind]] = []
    candidates = [Blind(gamma=g, start=s, limit=ROUNDS) for g in GAMMAS for s in STARTS]
    for number, blind in enumerate(candidates):
        scores = []
        for name in masks:
            seen = observe(images, mask(name, images.shape, count=len(images)))
            scores.append(Score.of(blind(f, seen.y).estimate, images.pixels))
        merits = [(s.accurate.value, s.approximate.value, s.mean_psnr) for s in scores]
        tried.append((tuple(sum(m) / len(m) for m in zip(*merits, strict=True)), blind))
        if progress:
            progress(number + 1, len(candidates))
    best = max(tried, key=lambda t: t[0])[1]
    rows = [
        {"gamma": b.gamma, "start": b.start.__name__, "accurate": m[0], "approximate": m[1], "mean_psnr": m[2]}
        for m, b in tried
    ]
    return Choice(Blind(gamma=best.gamma, start=best.start), rows)
