"""Generate and filter: how many training images a model generates that is given none of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from recollect.counting import counted
from recollect.devices.precision import device_of
from recollect.diffusion import Denoiser, is_pipeline, sample
from recollect.diffusion.sampling import STEPS, clamped, evaluations_for, noise_levels
from recollect.errors import InputError, check_seed, is_whole
from recollect.extraction.capture_recapture import StoredImages, stored_images
from recollect.extraction.copies import Copies, find_copies
from recollect.extraction.starts import kinds_of_starts, starts
from recollect.images import Images
from recollect.methods import Iterate
from recollect.models import at_most, open_model, probe_model
from recollect.scoring import ACCURATE, APPROXIMATE

PATCH = 0.15  # the threshold of Carlini et al. 2023
ITERATIONS = 200

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Extraction:
    """The samples, the training image that is nearest to each, and what making them took."""

    samples: Tensor  # NaN where the model's values are not finite
    nearest: Copies
    ids: Sequence[str]  # of the training images
    evaluations: int  # of the network, over all samples
    kind: str  # how samples were made
    stored: StoredImages | None = None  # an autoencoder's, by capture and recapture
    starts: Sequence[str] = ()  # the kind of start of each sample of an autoencoder

    @property
    def distinct(self) -> dict[str, int]:
        """The number of distinct training images among the samples, by each rule."""
        return {
            "accurate": len(self.nearest.distinct(ACCURATE)),
            "approximate": len(self.nearest.distinct(APPROXIMATE)),
            "patches": len(self.nearest.distinct_by_patches(PATCH)),
        }

    @property
    def not_finite(self) -> int:
        """The number of samples with values that are not finite, which can be no copies."""
        return len(self.samples) - count_finite(self.samples)

    @property
    def evaluations_each(self) -> float | None:
        """The network evaluations for each training image that was generated approximately; None if none was."""
        count = self.distinct["approximate"]
        return self.evaluations / count if count else None

    @property
    def by_start(self) -> dict[str, dict[str, int]]:
        """For each kind of start: the samples, those that are copies approximately, and of how many images."""
        kinds, copied = np.array(self.starts), self.nearest.mse < APPROXIMATE
        counts = {}
        for kind in dict.fromkeys(self.starts):
            of_kind = kinds == kind
            copies = of_kind & copied
            distinct = np.unique(self.nearest.by_pixels[copies])
            counts[kind] = {"samples": int(of_kind.sum()), "copies": int(copies.sum()), "distinct": len(distinct)}
        return counts

    def __str__(self) -> str:
        distinct, total = self.distinct, len(self.ids)
        lines = [
            f"{distinct['approximate']} of the {total} training images appeared among "
            f"{counted(len(self.samples), 'sample')} ({self.kind}): {distinct['accurate']} of them accurately.",
            f"By the patch rule of Carlini et al. (2023), {distinct['patches']} appeared.",
            f"This took {self.evaluations} network evaluations{_each(self.evaluations_each)}.",
        ]
        if self.not_finite:
            lines.append(describe_not_finite(self.not_finite, len(self.samples)))
        if self.stored is not None:
            lines.append(
                f"By capture and recapture the model stores at least {self.stored.at_least} of them (95%). The "
                f"estimate, {self.stored.estimate:.0f}, is too low if some appear more rarely than others."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the counts, and for each training image that was generated how exactly and how often."""
        captures = self.nearest.captures(APPROXIMATE, len(self.ids))
        return {
            "samples": len(self.samples),
            "not_finite": self.not_finite,
            "kind": self.kind,
            "training_images": len(self.ids),
            "distinct": self.distinct,
            "thresholds": {"accurate": ACCURATE, "approximate": APPROXIMATE, "patches": PATCH},
            "evaluations": self.evaluations,
            "evaluations_each": self.evaluations_each,
            "stored": None if self.stored is None else vars(self.stored),
            "by_start": self.by_start,
            "found": {self.ids[i]: error for i, error in sorted(self.nearest.smallest(APPROXIMATE).items())},
            "captures": {self.ids[i]: int(captures[i]) for i in captures.nonzero()[0].tolist()},
        }


def extract(
    model: Any, train: Images, *, control: Images | None = None, samples: int = 2048, steps: int = STEPS,
    seed: int = 42, chunk: int | None = None, label: int | None = None, progress: Progress | None = None,
) -> Extraction:  # fmt: skip
    """Count the training images among the samples of a diffusion model, or the attractors of an autoencoder.

    A diffusion model, or a pipeline of diffusers, is sampled from noise in so many steps; `label` is the class of a
    class-conditional pipeline. An autoencoder is applied over and over from noise, constants, blends and, if given,
    unseen images. ADMM with every pixel erased does the same: its v is f(v).
    """
    if not is_whole(samples, 1):
        raise InputError(f"samples is a number of images, 1 or more; got {samples!r}.")
    check_seed(seed)
    if is_pipeline(model) or label is not None:
        model = open_model(model, label=label)
    if isinstance(model, Denoiser):
        model.check_shape(*train.image_shape)
        return _from_denoiser(model, train, samples, steps, seed, chunk, progress)
    return _from_autoencoder(model, train, control, samples, seed, chunk, progress)


def _from_denoiser(
    denoiser: Denoiser, train: Images, samples: int, steps: int, seed: int, chunk: int | None,
    progress: Progress | None,
) -> Extraction:  # fmt: skip
    options = {} if chunk is None else {"chunk": chunk}
    drawn = sample(denoiser, samples, steps=steps, seed=seed, progress=progress, **options)
    _check_finite(drawn, denoiser, steps)
    kind, evaluations = f"from noise in {steps} steps", samples * evaluations_for(steps)
    return Extraction(drawn, find_copies(drawn, train), train.ids, evaluations, kind)


def _check_finite(drawn: Tensor, denoiser: Denoiser, steps: int) -> None:
    """Refuse samples of which none is finite: that nothing is found among them would say nothing of the model."""
    if not count_finite(drawn):
        first, *_, last, _clean = noise_levels(denoiser, steps)
        raise InputError(
            f"None of {counted(len(drawn), 'sample')} is finite, so nothing can be found among them: the denoiser "
            f"{denoiser.name} returns NaN or infinite values at some of the noise levels of sampling, {last:g} to "
            f"{first:g}."
        )


def _from_autoencoder(
    f: Any, train: Images, control: Images | None, samples: int, seed: int, chunk: int | None,
    progress: Progress | None,
) -> Extraction:  # fmt: skip
    f = at_most(f, chunk)
    begun = starts(samples, train.image_shape, seed, control).to(device_of(f))
    probe_model(f, train)
    recovery = Iterate(limit=ITERATIONS)(f, begun, chunk=chunk, progress=progress)
    ended = clamped(recovery.estimate).cpu()
    ended[[stop.name == "DIVERGED" for stop in recovery.stops]] = math.nan  # they hold their last finite values
    near = find_copies(ended, train)
    stored = stored_images(near.captures(APPROXIMATE, len(train)))
    kind = "attractors from noise, constants and blends"
    if control is not None:
        kind = "attractors from noise, constants, blends and unseen images"
    kinds = kinds_of_starts(samples, with_unseen=control is not None)
    return Extraction(ended, near, train.ids, int(recovery.steps.sum()), kind, stored, kinds)


def count_finite(images: Tensor) -> int:
    return int(images.isfinite().flatten(1).all(1).sum())


def describe_not_finite(count: int, total: int) -> str:
    """Say that samples were lost, which lowers the numbers found."""
    return f"{count} of the {counted(total, 'sample')} held NaN or infinite values, so nothing was found in them."


def _each(evaluations: float | None) -> str:
    return "" if evaluations is None else f", {evaluations:.0f} for each"
