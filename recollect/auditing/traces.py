"""A few recoveries round by round, for the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.measure import Conditions
from recollect.auditing.method_setup import method_for, names_with
from recollect.auditing.pictures import as_colour, as_grey, mean_over_channels
from recollect.degradation import Erasure, Observation, observe
from recollect.images import Images
from recollect.recovery import Recovery, Snapshot
from recollect.scoring import mse

IMAGES = 4  # shown round by round
EARLY = 20  # rounds of each that are all kept
PER_E_FOLD = 10  # rounds kept while their number grows by a factor of e
PREFERRED_MASK = "half"  # large holes take many rounds


class Frame(NamedTuple):
    """One image after one round."""

    round: int
    estimate: Tensor
    mask: Tensor | None


@dataclass
class RoundRecorder:
    """Collects estimates and masks through a method's trace callback: first rounds, fewer later ones, the last."""

    frames: dict[int, list[Frame]] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> None:
        masks = None
        if isinstance(snapshot.degradation, Erasure):
            masks = mean_over_channels(snapshot.degradation.keep.expand_as(snapshot.estimate)).cpu()
        estimates, rounds = snapshot.estimate.detach().cpu().clone(), snapshot.round.tolist()
        for row, image in enumerate(snapshot.index.tolist()):
            frames = self.frames.setdefault(image, [])
            if frames and not is_kept(frames[-1].round):
                frames.pop()  # it was there in case it was the last
            mask = None if masks is None else masks[row]
            frames.append(Frame(rounds[row], estimates[row], mask))


def is_kept(number: int) -> bool:
    """Whether a round is kept: all early ones, then about one in each tenth more."""
    return number <= EARLY or int(PER_E_FOLD * math.log(number)) > int(PER_E_FOLD * math.log(number - 1))


def trace_rounds(
    images: Images, seen: Observation, methods: Mapping[str, Callable[..., Recovery]]
) -> dict[str, np.ndarray]:
    """Recover these images and keep rounds: {"estimate/blind/0": frames x H x W x C, "mse/blind/0": frames, ...}."""
    shown: dict[str, np.ndarray] = {}
    for j in range(len(images)):
        shown[f"original/{j}"] = as_colour(images[j].pixels)[0]
        shown[f"degraded/{j}"] = as_colour(seen.y[j : j + 1])[0]
    for name, run in methods.items():
        recorder = RoundRecorder()
        run(seen.y, trace=recorder)
        for j, frames in recorder.frames.items():
            shown |= {f"{kind}/{name}/{j}": array for kind, array in _arrays(frames, images[j].pixels).items()}
    return shown


def _arrays(frames: Sequence[Frame], original: Tensor) -> dict[str, np.ndarray]:
    estimates = torch.stack([frame.estimate for frame in frames])
    arrays = {
        "round": np.array([frame.round for frame in frames]),
        "mse": mse(estimates, original.expand_as(estimates)).numpy(),
        "estimate": as_colour(estimates),
    }
    masks = [frame.mask for frame in frames if frame.mask is not None]
    if masks:
        arrays["mask"] = as_grey(torch.stack(masks))
    return arrays


def trace_audit(
    f: Any, damaged_sets: Sequence[DamagedSet], methods: Mapping[str, Any], conditions: Conditions
) -> tuple[str | None, dict[str, np.ndarray]]:
    """Trace a few training images under one mask by the methods that work in rounds; gives the mask and the rounds."""
    train = [damaged for damaged in damaged_sets if damaged.set == "train"]
    chosen = next((damaged for damaged in train if damaged.mask == PREFERRED_MASK), train[0])
    in_rounds = {name: method_for(methods[name], chosen.truth) for name in names_with(methods, "in_rounds")}
    if not in_rounds:
        return None, {}
    few = chosen.images[:IMAGES]
    seen = observe(few, chosen.truth[:IMAGES], noise_std=conditions.noise_std, seed=conditions.seed)
    return chosen.mask, trace_rounds(few, seen, {name: partial(method, f) for name, method in in_rounds.items()})
