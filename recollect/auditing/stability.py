"""Numerical doubt: a few recoveries run again in float64 and in another batch size, to see whether answers move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.measure import Conditions, recover
from recollect.auditing.method_setup import method_for
from recollect.auditing.model_facts import as_float64
from recollect.auditing.progress import AuditProgress
from recollect.auditing.statistics import Statistics
from recollect.auditing.store import Store
from recollect.degradation import Observation, observe
from recollect.images import Images
from recollect.scoring import mse

MOST_IMAGES, FEWEST_IMAGES = 8, 2
SHARE = 4  # one image of so many is run again, between these numbers
OTHER_BATCH = 3  # images; the kernels of a matrix multiplication depend on this number
RUNS = 3  # as in the audit, in float64, in the other batch size
FLOAT64 = "float64"
Facts = dict[str, Any]


def sample_size(images: int) -> int:
    """Choose how many images are run again."""
    return min(images, MOST_IMAGES, max(FEWEST_IMAGES, images // SHARE))


def examine_stability(
    f: Any, damaged_sets: Sequence[DamagedSet], statistics: Statistics, method: Any, threshold: float,
    training: Images, conditions: Conditions, store: Store, progress: AuditProgress,
) -> Facts:  # fmt: skip
    """Run the strongest attack again on a few training images under one mask; the result is stored.

    The mask is the one under which the attack recovers nearest to half of the images: outcomes may change there.
    """
    train = [damaged for damaged in damaged_sets if damaged.set == "train"]
    rates = [statistics.rate("train", damaged.mask, statistics.main_method, threshold).value for damaged in train]
    _, number = min((abs(rate - 0.5), number) for number, rate in enumerate(rates))
    few = _sampled(train[number])
    method = method_for(method, few.truth)
    identity = {**conditions.settings(few, method, training), "chunk": conditions.chunk}
    runs = store.once("stability", identity, partial(_runs, f, few, method, conditions, progress))
    return {"method": statistics.main_method, "mask": few.mask, "images": list(few.images.ids), "runs": runs}


@dataclass(frozen=True)
class Stability:
    """How many answers move, and how many change whether their image is recovered, at one threshold."""

    method: str
    mask: str
    images: int
    changes: list[str]  # what was changed
    moved: int
    flipped: int
    largest: float  # the largest MSE between two answers to one image; infinite where one is not finite
    threshold: float

    @classmethod
    def of(cls, facts: Mapping[str, Any], threshold: float) -> Stability:
        """Compare the runs that `examine_stability` recorded."""
        first, *others = facts["runs"]
        distances = [_finite(run["moved"]) for run in others]
        outcomes = [_finite(run["mse"]) < threshold for run in others]
        expected = _finite(first["mse"]) < threshold
        largest = torch.stack(distances).amax(0)
        flipped = torch.stack([outcome != expected for outcome in outcomes]).any(0)
        return cls(
            facts["method"], facts["mask"], len(facts["images"]), [run["change"] for run in others],
            int((largest > threshold).sum()), int(flipped.sum()), float(largest.max()), threshold,
        )  # fmt: skip

    @property
    def share_moved(self) -> float:
        return self.moved / self.images


def _sampled(damaged: DamagedSet) -> DamagedSet:
    rows = damaged.images.spread(sample_size(len(damaged.images)))
    return replace(damaged, images=damaged.images[rows], truth=damaged.truth.of_images(rows))


def _runs(f: Any, few: DamagedSet, method: Any, conditions: Conditions, progress: AuditProgress) -> list[Facts]:
    """Recover the same damaged images in every arithmetic; a model without float64 leaves that run out."""
    seen = observe(few.images, few.truth, noise_std=conditions.noise_std, seed=conditions.seed)
    truth, rows, first = few.images.pixels, [], None
    for number, (change, answer) in enumerate(_answers(f, seen, method, conditions.chunk)):
        progress("checking numerical stability", number, RUNS)
        first = answer if first is None else first
        rows.append({"change": change, "mse": mse(answer, truth).tolist(), "moved": mse(answer, first).tolist()})
    progress("checking numerical stability", RUNS, RUNS)
    return rows


def _answers(f: Any, seen: Observation, method: Any, chunk: int | None) -> Iterator[tuple[str, Tensor]]:
    yield "none", recover(method, f, seen, chunk=chunk).estimate
    if (exact := _in_float64(f, seen, method, chunk)) is not None:
        yield FLOAT64, exact
    together = min(chunk or len(seen.y), len(seen.y))
    other = OTHER_BATCH if together > OTHER_BATCH else max(1, together - 1)
    yield f"batches of {other}", recover(method, f, seen, chunk=other).estimate


def _in_float64(f: Any, seen: Observation, method: Any, chunk: int | None) -> Tensor | None:
    """Recover in float64; None where the model or the method cannot."""
    double = as_float64(f, seen.y[:1])
    if double is None:
        return None
    try:
        return recover(method, double, replace(seen, y=seen.y.double()), chunk=chunk).estimate.float()
    except Exception:  # a method of another package, or one whose damage is fixed to float32
        return None


def _finite(values: Sequence[float | None]) -> Tensor:
    """Read recorded errors: what is not finite is recorded as null, and counts as infinite."""
    return torch.tensor([torch.inf if value is None else value for value in values], dtype=torch.float64)
