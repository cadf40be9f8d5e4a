"""A few recoveries round by round, for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.measure import Conditions
from recollect.auditing.method_setup import method_for, names_where
from recollect.auditing.pictures import as_colour, as_grey
from recollect.degradation import Erasure, Observation, observe
from recollect.images import Images
from recollect.recovery import Recovery, Snapshot

IMAGES = 4  # shown round by round
ROUNDS = 40  # shown of each, at the most
PREFERRED_MASK = "half"  # large holes take many rounds


@dataclass
class RoundRecorder:
    """Collects estimates and masks round by round through a method's trace callback."""

    estimates: dict[int, list[np.ndarray]] = field(default_factory=dict)
    masks: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> None:
        for row, image in enumerate(snapshot.index.tolist()):
            estimates = self.estimates.setdefault(image, [])
            if len(estimates) >= ROUNDS:
                continue
            estimates.append(as_colour(snapshot.estimate[row : row + 1])[0])
            if isinstance(snapshot.degradation, Erasure):
                keep = snapshot.degradation.keep[row : row + 1].float().mean(1)
                self.masks.setdefault(image, []).append(as_grey(keep)[0])


def trace_rounds(
    images: Images, seen: Observation, methods: Mapping[str, Callable[..., Recovery]]
) -> dict[str, np.ndarray]:
    """Recover these images and keep every round: {"estimate/blind/0": rounds x H x W x C, ...}."""
    shown: dict[str, np.ndarray] = {}
    for j in range(len(images)):
        shown[f"original/{j}"] = as_colour(images[j].pixels)[0]
        shown[f"degraded/{j}"] = as_colour(seen.y[j : j + 1])[0]
    for name, run in methods.items():
        recorder = RoundRecorder()
        run(seen.y, trace=recorder)
        shown |= {f"estimate/{name}/{j}": np.stack(rounds) for j, rounds in recorder.estimates.items()}
        shown |= {f"mask/{name}/{j}": np.stack(rounds) for j, rounds in recorder.masks.items()}
    return shown


def trace_audit(
    f: Any, damaged_sets: Sequence[DamagedSet], methods: Mapping[str, Any], conditions: Conditions
) -> tuple[str | None, dict[str, np.ndarray]]:
    """Trace a few training images under one mask by the methods that work in rounds; gives the mask and the rounds."""
    train = [damaged for damaged in damaged_sets if damaged.set == "train"]
    chosen = next((damaged for damaged in train if damaged.mask == PREFERRED_MASK), train[0])
    in_rounds = {name: method_for(methods[name], chosen.truth) for name in names_where(methods, "in_rounds")}
    if not in_rounds:
        return None, {}
    few = chosen.images[:IMAGES]
    seen = observe(few, chosen.truth[:IMAGES], noise_std=conditions.noise_std, seed=conditions.seed)
    return chosen.mask, trace_rounds(few, seen, {name: partial(method, f) for name, method in in_rounds.items()})
